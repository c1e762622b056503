"""A session that is paused says how, stands still, and goes on when it is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.kernel.errors import NotAllowedNow, NotYours, PlatformRefused
from sublet.platforms.port import Platform
from tests.contract.services import ME, OTHER, ask, in_phase, over, reach, serving
from tests.contract.test_service_life import memory

pytestmark = pytest.mark.anyio


def is_paused(session: Session) -> bool:
    return session.paused


def goes_on(session: Session) -> bool:
    return not session.paused


async def test_what_runs_is_stopped_and_its_time_runs_on(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="1h")) as service:
        mine = await ask(service, time="4s")
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        await reach(service, id, in_phase(Phase.RUNNING))
        session, how = await service.pausing.pause(id, ME)
        assert how == "stopped on its node; its time runs on"
        assert session.condition == "paused: stopped on its node; its time runs on"
        _, sentences = await service.explanations.explain(id, ME)
        assert f"sublet resume {id[:8]}" in " ".join(sentences)
        ended = await over(service, id)
        assert ended.end
        assert ended.end.kind is EndKind.TIMEOUT


async def test_what_goes_on_is_as_it_was(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}) as service:
        mine = await ask(service, run=["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"], time="1h")
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        await reach(service, id, in_phase(Phase.RUNNING))
        for _ in range(2):
            assert (await service.pausing.pause(id, ME))[0].paused
            await reach(service, id, is_paused)
            session, how = await service.pausing.resume(id, ME)
            assert (session.condition, how) == ("", "continued on its node")
            await reach(service, id, goes_on)
        (tmp_path / "platforms" / "here" / "sessions" / id / "work" / "go").touch()
        assert (await over(service, id)).phase is Phase.COMPLETED
        kinds = [event.kind for event in await service.events.events(ME, session=id)]
        assert kinds.count("session.paused") == kinds.count("session.resumed") == 2


async def test_what_waits_in_a_queue_is_held_there(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(terms="predicted", waits=["0s", "2s", "3s"], takes="0s")) as service:
        mine = await ask(service)
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        await reach(service, id, lambda session: bool(session.job))
        session, how = await service.pausing.pause(id, ME)
        assert (how, session.condition) == ("held in the queue", "paused: held in the queue")
        assert session.phase is Phase.PREPARING
        await reach(service, id, is_paused)
        assert (await service.pausing.resume(id, ME))[1] == "released in the queue"
        assert (await over(service, id)).phase is Phase.COMPLETED


async def test_a_pause_outside_of_the_service_is_seen(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="1h")) as service:
        mine = await ask(service, time="1h")
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        running = await reach(service, id, in_phase(Phase.RUNNING))
        await service.platforms.by_name["trial"].pause(running.job)
        await reach(service, id, is_paused)
        await service.sessions.cancel(id, ME)


async def test_only_its_owner_pauses_it_and_only_what_its_platform_has_in_hand(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="1h")) as service:
        mine = await ask(service, time="1h")
        id = mine.offers[0].id
        with pytest.raises(NotAllowedNow, match="This offer has not been accepted yet, so it can't be paused"):
            await service.pausing.pause(id, ME)
        await service.sessions.accept(id, ME)
        await reach(service, id, in_phase(Phase.RUNNING))
        for act in (service.pausing.pause, service.pausing.resume):
            with pytest.raises(NotYours):
                await act(id, OTHER)
        await service.sessions.cancel(id, ME)
        with pytest.raises(NotAllowedNow):
            await service.pausing.resume(id, ME)


async def test_a_platform_that_has_no_way_to_pause_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="1h")) as service:
        with pytest.raises(PlatformRefused, match="no way to pause") as refused:
            await Platform.pause(service.platforms.by_name["trial"], "job")
        assert "sublet cancel" in refused.value.advice
