"""Releases reservations that platforms hold for offers, when nobody accepted the offer or its session is over."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from sublet.booking.model.phases import ACTIVE, Phase
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.errors import LoginNeeded, PlatformUnreachable, SubletError
from sublet.kernel.log import log
from sublet.platforms.reserving import Reserves
from sublet.store.store import Store

PAUSE = 2.0  # seconds between two checks
AGAIN = timedelta(seconds=30)  # after a failed try
UNWRITTEN = timedelta(minutes=2)  # for this long after a reservation is made, its offer may not be recorded yet


class ReservationCare:
    """Releases reservations that nobody needs, beside the loop; no platform waits for another."""

    def __init__(self, store: Store, platforms: KnownPlatforms, now: Clock, pause: float = PAUSE) -> None:
        """Start with nothing checked."""
        self._store, self._platforms, self._now, self._pause = store, platforms, now, pause
        self._again: dict[str, datetime] = {}  # platforms that failed → when they are tried again
        self._written: dict[str, set[str]] = {}  # platforms → reservations whose sessions have been recorded

    async def run(self) -> None:
        """Check again and again, until cancelled."""
        while True:
            await self.look_after(self._now())
            await asyncio.sleep(self._pause)

    async def look_after(self, now: datetime) -> None:
        """Check all platforms that make reservations once."""
        platforms = {name: platform for name, platform in self._platforms.by_name.items() if self._is_due(name, now)}
        reserving = {name: platform for name, platform in platforms.items() if isinstance(platform, Reserves)}
        await asyncio.gather(*(self._try(name, platform, now) for name, platform in reserving.items()))

    def _is_due(self, name: str, now: datetime) -> bool:
        again = self._again.get(name, now)
        return not again - AGAIN <= now < again  # also after the clock was set back

    async def _try(self, name: str, platform: Reserves, now: datetime) -> None:
        try:
            await self._give_up(name, platform, now)
            self._again.pop(name, None)
        except (LoginNeeded, PlatformUnreachable):
            self._again[name] = now + AGAIN
        except (SubletError, OSError) as error:
            self._again[name] = now + AGAIN
            log.warning("reservations.failed", platform=name, why=str(error))

    async def _give_up(self, name: str, platform: Reserves, now: datetime) -> None:
        made = await platform.list_reservations()
        if not made:
            self._written.pop(name, None)
            return
        sessions = await self._store.read(lambda tx: {key: tx.sessions.get(key) for key in made})
        written = {key for key, session in sessions.items() if session or key in self._written.get(name, ())}
        surplus = [key for key, session in sessions.items() if not _is_wanted(session, key in written, made[key], now)]
        self._written[name] = written
        if surplus:
            await platform.give_up(surplus)
            log.info("reservations.given_up", platform=name, sessions=surplus)


def _is_wanted(session: Session | None, was_written: bool, made: datetime, now: datetime) -> bool:
    """Whether the offer is open or its session is active; an offer that isn't recorded yet is given some time."""
    if session:
        return session.phase in ACTIVE | {Phase.OFFERED}
    return not was_written and now - made < UNWRITTEN
