"""An interactive session that nobody has open is ended, after its owner was told; one that somebody has open is not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import Mark
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.service import Service
from tests.contract.services import ME, ask, over, reach, serving

pytestmark = pytest.mark.anyio
PLAYED = {"trial": {"kind": "memory", "takes": "3h"}}


async def begin(service: Service, **short: Any) -> Session:
    made = await ask(service, run=None, interactive="lab", time="2h", **short)
    session = await service.sessions.accept(made.offers[0].id, ME)
    return await reach(service, session.id, lambda one: one.phase is Phase.AVAILABLE)


def pass_time(service: Service, time: timedelta) -> None:
    before = service.now.read  # type: ignore[attr-defined]
    service.now.read = lambda: before() + time  # type: ignore[attr-defined]


async def test_what_nobody_has_open_is_ended_after_its_owner_was_told(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PLAYED) as service:
        session = await begin(service, idle="40m")
        await service.connections.note_visit(session.id)
        pass_time(service, timedelta(minutes=36))
        unused = await reach(service, session.id, lambda one: Mark.UNUSED in one.marks)
        assert "unless someone opens it" in unused.condition
        await service.connections.note_visit(session.id)
        await reach(service, session.id, lambda one: Mark.UNUSED not in one.marks)
        pass_time(service, timedelta(minutes=41))
        ended = await over(service, session.id)
        assert ended.phase is Phase.CANCELLED
        assert ended.end is not None
        assert ended.end.by == "sublet, because nobody had it open for 40 min"
        kinds = [event.kind for event in await service.events.events(ME, session=session.id)]
        assert EventKind.WARNED in kinds
        assert await service.store.read(lambda tx: tx.visits.get(session.id)) is None


async def test_a_request_can_say_less_than_is_usual_here_and_not_more(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PLAYED, idle="30m") as service:
        session = await begin(service, idle="90m")
        end = await service.visits.find_idle_end(session)
        assert end is not None
        assert end.idle == timedelta(minutes=30)
    async with serving(tmp_path / "other", platforms=PLAYED) as service:
        session = await begin(service)
        assert await service.visits.find_idle_end(session) is None, "nobody set a limit"


async def test_time_when_the_service_was_away_does_not_count(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PLAYED, idle="30m") as service:
        session = await begin(service)
        await service.connections.note_visit(session.id)
    async with serving(tmp_path, loop=False, platforms=PLAYED, idle="30m") as service:
        pass_time(service, timedelta(hours=1))
        end = await service.visits.find_idle_end(session)
        assert end is not None
        assert end.seen >= service.now() - timedelta(minutes=1)
