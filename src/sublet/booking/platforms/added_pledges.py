"""Pledges that operators added, as this process knows them; reread when another process has changed them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.platforms.pledge_settings import PledgeSettings
from sublet.store.store import Store

EVERY = timedelta(seconds=1)
NEVER = (-1, -1)


@dataclass
class AddedPledges:
    """Keeps the platforms' pledges in step with the database."""

    store: Store
    platforms: KnownPlatforms

    _seen: datetime | None = None
    _stamp: tuple[int, int] = NEVER

    async def look_after(self, now: datetime) -> None:
        """Apply changes that any process made, within a second."""
        if self._seen and abs(now - self._seen) < EVERY:
            return
        self._seen = now
        if await self.store.read(lambda tx: tx.pledges.stamp()) != self._stamp:
            for name in await self.read():
                self.platforms.survey_again(name)

    async def take_up(self) -> None:
        """Apply a change at once, so that the calendars of platforms that answer know it afterwards."""
        for name in await self.read():
            with suppress(SubletError):  # a platform that doesn't answer learns of it later
                await self.platforms.survey_soon(name)
                await self.platforms.survey_soon(name)  # the first may have been under way before the change

    async def read(self) -> list[str]:
        """Read all added pledges; return the platforms whose calendars have to change."""
        stamp, listed = await self.store.read(lambda tx: (tx.pledges.stamp(), tx.pledges.list()))
        added: dict[str, dict[str, PledgeSettings]] = {}
        for pledge in listed:
            try:
                settings = PledgeSettings.model_validate(dict(pledge.settings))
            except ValidationError as error:
                log.error("pledge.unreadable", platform=pledge.platform, pledge=pledge.name, why=str(error))
            else:
                added.setdefault(pledge.platform, {})[pledge.name] = settings
        self._stamp = stamp
        return self.platforms.pledges.take_up(added)
