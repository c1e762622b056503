"""The platforms: what they have, how busy they are, whether they keep their promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.core.offer import Node, Take
from sublet.errors import SubletError
from sublet.platforms.conformance import Finding, check_platform
from sublet.platforms.port import Platform, Survey
from sublet.service.events import Events
from sublet.service.sweeping import Swept, sweep


@dataclass(frozen=True, slots=True)
class PlatformState:
    """A platform and its last survey; or what is wrong with it."""

    name: str
    kind: str
    terms: str
    survey: Survey | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Busy:
    """What is taken of a platform over a time."""

    platform: str
    start: datetime
    end: datetime
    nodes: tuple[Node, ...]
    pools: Mapping[str, int]
    takes: Mapping[str, Sequence[Take]]


class Platforms(Events):
    """Look at the platforms."""

    async def platforms(self) -> list[PlatformState]:
        """All of them, the broken ones too."""
        there = [await self._state(platform) for platform in list(self.platforms_by_name.values())]
        return there + [PlatformState(name, "broken", "", None, why) for name, why in self.broken.items()]

    async def platform(self, name: str) -> PlatformState:
        """One of them."""
        return await self._state(self.there(name))

    async def _state(self, platform: Platform) -> PlatformState:
        name = platform.name
        try:
            survey = await self.survey(name)
        except SubletError as error:
            return PlatformState(name, platform.kind, platform.terms, None, f"{error.message} {error.advice}".strip())
        return PlatformState(name, platform.kind, platform.terms, survey)

    async def check(self, name: str) -> Sequence[Finding]:
        """Run the contract suite on the live platform."""
        return await check_platform(self.there(name))

    async def sweep(self, name: str, idle: timedelta | None = None) -> Swept:
        """Remove what is left there and no session needs; shared files that nobody needed for so long, too."""
        self.there(name)
        return await sweep(self, name, timedelta(0), idle)

    async def busy(self, name: str, start: datetime, end: datetime) -> Busy:
        """What is booked and held there, node by node; nothing says by whom."""
        self.there(name)
        survey = await self.survey(name)
        takes = await self.store.write(lambda tx: tx.books.calendar(name).busy(start, end))
        return Busy(name, start, end, survey.nodes, survey.pools, takes)
