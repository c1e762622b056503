"""Platforms: what they have, how busy they are, conformance checks and sweeps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.access.model.access_words import how, insist, refusal
from sublet.booking.loop.sweeping import Swept, sweep
from sublet.booking.model.drain import Drain
from sublet.booking.model.offer import Node, Take
from sublet.booking.platforms.known import KnownPlatforms, needs_login, require_loaded
from sublet.booking.ports import ClosedPlatforms, GuestPlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NotInvited, SubletError
from sublet.people.model.person import Person
from sublet.platforms.conformance import RuleFinding, check_platform
from sublet.platforms.port import Platform, Survey
from sublet.store.store import Store

UNOPENED = "You may not use it."


@dataclass(frozen=True, slots=True)
class PlatformState:
    """A platform and its last survey, or what is wrong with it."""

    name: str
    kind: str
    terms: str
    survey: Survey | None
    trouble: str = ""
    needs_login: bool = False  # a person must sign in before anything can be started there
    ask: str = ""  # how to get access, if the person only sees its name
    drain: Drain | None = None  # while it is set, nothing new starts there


@dataclass(frozen=True, slots=True)
class Busy:
    """What is taken of a platform during a time."""

    platform: str
    start: datetime
    end: datetime
    nodes: tuple[Node, ...]
    pools: Mapping[str, int]
    takes: Mapping[str, Sequence[Take]]


@dataclass
class Platforms:
    """The platforms, as people see and check them."""

    store: Store
    now: Clock
    platforms: KnownPlatforms
    guests: GuestPlatforms
    closing: ClosedPlatforms

    async def states(self, person: Person, *, anew: bool = False) -> list[PlatformState]:
        """Return the platforms that a person may use, including broken ones; of those that they can ask for, the name.

        With `anew`, an operator gets them as they are now.
        """
        if anew and person.operator:
            for name in self.platforms.by_name:
                self.platforms.surveys.pop(name, None)
                self.platforms.refresh_survey(name)
        closed, usable = await self.closing.find_closed(person), await self.usable(person)
        there = list(self.platforms.by_name.items())
        seen = await asyncio.gather(*(self._state(platform) for name, platform in there if name in usable))
        by_name = {state.name: state for state in seen}
        states = []
        for name, _ in there:
            if name in by_name:
                states.append(by_name[name])
            elif name in closed and not closed[name].rules:
                states.append(PlatformState(name, "", "", None, UNOPENED, ask=how(closed[name])))
        broken = [name for name in self.platforms.broken if not person.guest and name not in closed]
        return states + [PlatformState(name, "broken", "", None, self.platforms.broken[name]) for name in broken]

    async def usable(self, person: Person) -> list[str]:
        """Return the names of the platforms that a person may use."""
        closed = await self.closing.find_closed(person)
        invited = await self.guests.list_shared_with(person) if person.guest else None
        return [name for name in self.platforms.by_name if name not in closed and (invited is None or name in invited)]

    async def open_for(self, name: str, person: Person) -> Platform:
        """Return a platform that a person may use; raise NotInvited or NotAllowed if they may not."""
        await self.platforms.open_if_new(name)
        require_loaded(self.platforms, name)
        platform = self.platforms.get(name)
        if person.guest and name not in await self.guests.list_shared_with(person):
            raise NotInvited(platform=name)
        if decision := (await self.closing.find_closed(person)).get(name):
            insist(refusal(decision), (decision.noun, decision.name))
        return platform

    async def platform(self, name: str, person: Person) -> PlatformState:
        """Return the state of one platform."""
        return await self._state(await self.open_for(name, person))

    async def _state(self, platform: Platform) -> PlatformState:
        name, now = platform.name, self.now()
        drain = await self.store.read(lambda tx: tx.drains.get(name, now))
        login = await needs_login(platform)
        state = PlatformState(name, platform.kind, platform.terms, None, needs_login=login, drain=drain)
        try:
            survey = await self.platforms.survey_soon(name)
            self.platforms.get(name)  # it may have been removed meanwhile
        except SubletError as error:
            return replace(state, trouble=error.sentences)
        return replace(state, survey=survey)

    async def check(self, name: str) -> Sequence[RuleFinding]:
        """Run the conformance suite on the live platform."""
        require_loaded(self.platforms, name)
        return await check_platform(self.platforms.get(name))

    async def sweep(self, name: str, idle: timedelta | None = None) -> Swept:
        """Remove files that no session needs from a platform; with `idle`, shared files unused for that long too."""
        self.platforms.get(name)
        return await sweep(self.platforms, self.store, name, timedelta(0), idle)

    async def busy(self, name: str, person: Person, start: datetime, end: datetime) -> Busy:
        """Return what is booked and held on a platform, node by node, without saying by whom."""
        await self.open_for(name, person)
        survey = await self.platforms.survey_soon(name)
        takes = await self.store.write(lambda tx: tx.books.calendar(name).busy(start, end))
        return Busy(name, start, end, survey.nodes, survey.pools, takes)
