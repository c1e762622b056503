"""The platforms: what they have, how busy they are, whether they keep their promises."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.core.access import Thing
from sublet.core.access_words import how, refusal
from sublet.core.drain import Drain
from sublet.core.offer import Node, Reason, Take
from sublet.errors import NotAllowed, NotInvited, SubletError
from sublet.platforms.conformance import Finding, check_platform
from sublet.platforms.port import Platform, Survey
from sublet.service.desk import Desk, Person, needs_login
from sublet.service.sweeping import Swept, sweep

UNOPENED = "You may not use it."


@dataclass(frozen=True, slots=True)
class PlatformState:
    """A platform and its last survey; or what is wrong with it."""

    name: str
    kind: str
    terms: str
    survey: Survey | None
    trouble: str = ""
    needs_login: bool = False  # a person must sign in before anything can be started there
    ask: str = ""  # how to be let in: who may not use it sees its name alone
    drain: Drain | None = None  # nothing new begins there


@dataclass(frozen=True, slots=True)
class Busy:
    """What is taken of a platform over a time."""

    platform: str
    start: datetime
    end: datetime
    nodes: tuple[Node, ...]
    pools: Mapping[str, int]
    takes: Mapping[str, Sequence[Take]]


class Platforms(Desk):
    """Look at the platforms."""

    async def platforms(self, person: Person, *, anew: bool = False) -> list[PlatformState]:
        """Those that a person may use, the broken ones too; of those that they can ask for, the name.

        `anew`: an operator wants to know how they are now.
        """
        if anew and person.operator:
            for name in self.platforms_by_name:
                self.surveys.pop(name, None)
                self.refresh_survey(name)
        closed, usable = await self.closed(person), await self.usable(person)
        there = list(self.platforms_by_name.items())
        seen = await asyncio.gather(*(self._state(platform) for name, platform in there if name in usable))
        by_name = {state.name: state for state in seen}
        states = []
        for name, _ in there:
            if name in by_name:
                states.append(by_name[name])
            elif name in closed and not closed[name].rules:
                states.append(PlatformState(name, "", "", None, UNOPENED, ask=how(closed[name])))
        broken = [name for name in self.broken if not person.guest and name not in closed]
        return states + [PlatformState(name, "broken", "", None, self.broken[name]) for name in broken]

    async def usable(self, person: Person) -> list[str]:
        """The names of those that a person may use."""
        closed = await self.closed(person)
        invited = await self.invited(person) if person.guest else None
        return [name for name in self.platforms_by_name if name not in closed and (invited is None or name in invited)]

    async def opened(self, name: str, person: Person) -> Platform:
        """One that a person may use, and so look at; NotInvited or NotAllowed if they may not."""
        platform = self.there(name)
        if person.guest and name not in await self.invited(person):
            raise NotInvited(platform=name)
        if decision := (await self.closed(person)).get(name):
            insist(refusal(decision), (decision.noun, decision.name))
        return platform

    async def platform(self, name: str, person: Person) -> PlatformState:
        """One of them."""
        return await self._state(await self.opened(name, person))

    async def _state(self, platform: Platform) -> PlatformState:
        name, now = platform.name, self.now()
        drain = await self.store.read(lambda tx: tx.drains.get(name, now))
        login = await needs_login(platform)
        state = PlatformState(name, platform.kind, platform.terms, None, needs_login=login, drain=drain)
        try:
            survey = await self.survey_soon(name)
            self.there(name)  # it may have gone meanwhile
        except SubletError as error:
            return replace(state, trouble=f"{error.message} {error.advice}".strip())
        return replace(state, survey=survey)

    async def check(self, name: str) -> Sequence[Finding]:
        """Run the contract suite on the live platform."""
        return await check_platform(self.there(name))

    async def sweep(self, name: str, idle: timedelta | None = None) -> Swept:
        """Remove what is left there and no session needs; shared files that nobody needed for so long, too."""
        self.there(name)
        return await sweep(self, name, timedelta(0), idle)

    async def busy(self, name: str, person: Person, start: datetime, end: datetime) -> Busy:
        """What is booked and held there, node by node; nothing says by whom."""
        await self.opened(name, person)
        survey = await self.survey_soon(name)
        takes = await self.store.write(lambda tx: tx.books.calendar(name).busy(start, end))
        return Busy(name, start, end, survey.nodes, survey.pools, takes)


def insist(reason: Reason | None, thing: Thing) -> None:
    """Raise NotAllowed if there is a reason."""
    if reason:
        raise NotAllowed(why=reason.message, how=_sentence(reason.nearest), noun=thing[0], name=thing[1])


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words and not words.startswith("sublet") else words
