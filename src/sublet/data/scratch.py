"""People's scratch: list it, keep it longer, clear it, and remove it when its retention time is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from sublet.data.model.places import LONGEST_KEEP, ScratchUse, scratch_name
from sublet.data.places import LIST, PlacePlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotFound, ScratchInUse, SubletError
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

LATER = timedelta(minutes=30)
LOOKED_AT = 1000  # active sessions of one person on one platform that are checked


@dataclass
class ScratchPlaces:
    """People's scratch directories."""

    store: Store
    now: Clock
    platforms: PlacePlatforms

    _postponed: dict[ScratchUse, datetime] = field(default_factory=dict)  # could not be removed; when to retry

    async def list(self, person: Person) -> Sequence[ScratchUse]:
        """List a person's scratch directories, and when each is removed."""
        return await self.store.read(lambda tx: tx.places.list_scratch(person.name))

    async def keep(self, person: Person, platform: str, place: str, time: timedelta) -> ScratchUse:
        """Keep a person's scratch for this long from now on; raise BadRequest if that is too long."""
        if not timedelta(0) < time <= LONGEST_KEEP:
            raise BadRequest(detail="scratch is kept for at most a year, and longer than no time", hint="Write 14d.")
        until = self.now() + time

        def change(tx: Tx) -> ScratchUse:
            uses = [replace(use, until=until) for use in _find(tx, person, platform, place)]
            for use in uses:
                tx.places.keep(use)
            return uses[-1]

        return await self.store.write(change)

    async def clear(self, person: Person, platform: str, place: str) -> None:
        """Remove a person's scratch with its content; refused while a session uses it."""
        uses = await self.store.read(lambda tx: self._find_unused(tx, person, platform, place))
        for use in uses:
            await self._remove(use)

    def _find_unused(self, tx: Tx, person: Person, platform: str, place: str) -> Sequence[ScratchUse]:
        uses = _find(tx, person, platform, place)
        if user := _find_user(tx, uses[-1]):
            raise ScratchInUse(place=place, session=user[:8])
        return uses

    async def sweep(self, now: datetime) -> None:
        """Remove scratch whose retention time is over; retry later what can't be removed now."""
        expired = await self.store.read(lambda tx: tx.places.list_expired(now))
        self._postponed = {use: at for use, at in self._postponed.items() if use in expired and at > now}
        for use in expired:
            if use in self._postponed:
                continue
            try:
                if await self.store.write(partial(_end_unused, use=use, now=now)):
                    await self._remove(use)
            except (SubletError, OSError) as error:
                self._postponed[use] = now + LATER
                log.warning("scratch.left", platform=use.platform, place=use.place, why=str(error))

    async def _remove(self, use: ScratchUse) -> None:
        await self.platforms.get(use.platform).remove_scratch(use.path, scratch_name(use.place, use.person))
        await self.store.write(lambda tx: tx.places.forget(use))
        log.info("scratch.removed", platform=use.platform, place=use.place, person=use.person)


def _find(tx: Tx, person: Person, platform: str, place: str) -> Sequence[ScratchUse]:
    uses = [use for use in tx.places.list_scratch(person.name) if (use.platform, use.place) == (platform, place)]
    if not uses:
        raise NotFound(noun="scratch of yours in", name=f"{place} on {platform}", hint=LIST)
    return uses


def _find_user(tx: Tx, use: ScratchUse) -> str:
    """Return an active session that uses this scratch, or an empty string."""
    page = tx.sessions.list(person=use.person, platform=use.platform, active=True, limit=LOOKED_AT)
    for session in page.items:
        offerset = tx.offersets.get(session.offerset)
        if offerset and any(wish.name == use.place for wish in offerset.request.places):
            return session.id
    return ""


def _end_unused(tx: Tx, use: ScratchUse, now: datetime) -> bool:
    """Whether this scratch can be removed now; if a session uses it, its retention time starts again."""
    if not _find_user(tx, use):
        return True
    declared = [place for place in tx.places.list(use.platform) if place.name == use.place]
    tx.places.keep(replace(use, until=now + (declared[0].keep if declared else timedelta(hours=1))))
    return False
