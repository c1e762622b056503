"""A session whose data came sooner than expected starts at once, unless it named its time or has no room yet."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import OfferSet, Session
from sublet.service import Service
from tests.contract.services import ME, ask, reach, serving

pytestmark = pytest.mark.anyio
LONG = {"trial": {"kind": "memory", "takes": "10h"}}
ALL = 16  # cores of the platform


async def ask_with_data(service: Service, preparing: str, **when: str) -> OfferSet:
    """Ask for all cores, with a small file of which the asker says that it takes long to bring."""
    file = service.settings.home / "small.txt"
    file.write_text("here at once")
    document = {
        "executable": {"kind": "command", "argv": ["true"]},
        "compute": {"cores": {"min": ALL}},
        "data": [{"location": file.as_uri(), "schedule": {"preparing": {"duration": preparing}}}],
        "schedule": {"requested": {"duration": "PT10M", **when}},
    }
    asked = await service.asking.read(json.dumps(document).encode(), "application/json", ME)
    return await service.asking.ask(ME, asked)


async def accept(service: Service, made: OfferSet) -> Session:
    return await service.sessions.accept(made.offers[0].id, ME)


def is_ready(session: Session) -> bool:
    return session.phase is Phase.PREPARING and session.condition.startswith("ready")


async def test_a_session_that_is_ready_early_starts_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        planned = await accept(service, await ask_with_data(service, "PT5M"))
        assert planned.start
        assert planned.start - service.now() > timedelta(minutes=4)
        runs = await reach(service, planned.id, lambda session: session.phase is Phase.RUNNING)
        assert runs.start
        assert runs.start < planned.start
        assert runs.until == runs.start + timedelta(minutes=10)
        assert "session.moved-up" in {event.kind for event in await service.events.events(ME, session=runs.id)}
        after = await ask(service, cores=ALL, time="1m")
        assert after.offers[0].offer.start >= runs.until  # the calendar knows its new time, and nothing of the old


async def test_a_session_that_named_its_time_waits_for_it_although_it_is_ready(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        later = f"{service.now() + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}/PT0S"
        planned = await accept(service, await ask_with_data(service, "PT4M59S", start=later))
        waits = await reach(service, planned.id, is_ready)
        assert waits.start == planned.start


async def test_a_session_that_is_ready_while_others_have_its_cores_keeps_its_start(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        first = await accept(service, await ask(service, cores=ALL, time="5m"))
        await reach(service, first.id, lambda session: session.phase is Phase.RUNNING)
        second = await accept(service, await ask_with_data(service, "PT4M59S"))
        waits = await reach(service, second.id, is_ready)
        assert (waits.start, first.until) == (second.start, second.start)
