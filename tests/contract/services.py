"""A service in this process, on a home of its own, for the tests of its use cases."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sublet.access.model.access import Limits
from sublet.access.rules import ChangedRules
from sublet.app import open_service
from sublet.booking.model.giving_way import USUAL, Precedence
from sublet.booking.model.phases import OVER, Phase
from sublet.booking.model.session import OfferSet, Session
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import SettableClock
from tests.databases import put_database

KEEP = Precedence(keep_offers=True)  # earlier offers stay
FIRM = Precedence(firm=True)  # as of those who accept at once
ME = Person("me")
OTHER = Person("other")
OPERATOR = Person("op@example.org", operator=True)


@contextlib.asynccontextmanager
async def serving(home: Path, *, loop: bool = True, **settings: Any) -> AsyncIterator[Service]:
    """A service whose one platform plays, unless the settings say otherwise."""
    settings.setdefault("platforms", {"trial": {"kind": "memory"}})
    put_database(home / "sublet.db")
    async with open_service(Settings.load(home, **settings), now=SettableClock(), loop=loop) as service:
        yield service


def change_settings(service: Service, **values: Any) -> None:
    """Let settings be these from now on, as after a reload."""
    service.settings.take_up(service.settings.model_copy(update=values), list(values))


async def ask(service: Service, person: Person = ME, precedence: Precedence = USUAL, **short: Any) -> OfferSet:
    """Ask in the short form."""
    short.setdefault("run", ["true"])
    asked = await service.asking.read(json.dumps(short).encode(), "application/json", person)
    return await service.asking.ask(person, replace(asked, precedence=precedence))


async def allow(
    service: Service, who: str = "*", *, noun: str = "system", name: str = "*", **more: Any
) -> ChangedRules:
    """Let people use something of a gateway; limits are given by name."""
    others = {key: more.pop(key) for key in ("effect", "expires", "note") if key in more}
    rule = {"effect": "allow", **others, "who": who, "noun": noun, "name": name, "limits": Limits(**more)}
    return await service.access.rules.add_rule(OPERATOR, **rule)


async def reach(
    service: Service, id: str, wanted: Callable[[Session], bool], person: Person = ME, seconds: float = 20
) -> Session:
    """Wait until a session is so; AssertionError if that doesn't come."""
    async with asyncio.timeout(seconds):
        while True:
            session = await service.sessions.get(id, person)
            if wanted(session):
                return session
            assert session.phase not in OVER, session
            await service.signals.wait(0.05)


async def over(service: Service, id: str, person: Person = ME, seconds: float = 20) -> Session:
    """Wait until a session is over."""
    async with asyncio.timeout(seconds):
        while (session := await service.sessions.get(id, person)).phase not in OVER:
            await service.signals.wait(0.05)
        return session


def in_phase(*phases: Phase) -> Callable[[Session], bool]:
    """Whether a session is in one of these."""
    return lambda session: session.phase in phases
