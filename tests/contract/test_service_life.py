"""A session's life: each phase, each way to end it, on each of the terms."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import PrivateAttr

from sublet.app import build_context
from sublet.booking.loop.reconcile import was_changed_meanwhile
from sublet.booking.loop.step import Step
from sublet.booking.loop.steps import STEPS
from sublet.booking.model.job import Job, JobState
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind
from sublet.platforms.local.platform import Local
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.platforms.sessiondir import SessionDir
from tests.clocks import set_clock
from tests.contract.services import ME, allow, ask, in_phase, over, reach, serving

pytestmark = pytest.mark.anyio


def memory(**settings: object) -> dict[str, dict[str, object]]:
    return {"trial": {"kind": "memory", **settings}}


async def test_a_session_goes_through_its_phases_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="1s")) as service:
        mine = await ask(service)
        await service.sessions.accept(mine.offers[0].id, ME)
        await over(service, mine.offers[0].id)
        phases = [event.phase for event in await service.events.events(ME, session=mine.offers[0].id)]
        assert list(dict.fromkeys(phases)) == [
            "ACCEPTED",
            "WAITING",
            "PREPARING",
            "RUNNING",
            "RELEASING",
            "COMPLETED",
        ]


async def test_an_interactive_session_is_available_with_a_connector(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory()) as service:
        service.presenter.base_url = "http://127.0.0.1:1"
        mine = await ask(service, run=None, interactive="lab", time="1h")
        await service.sessions.accept(mine.offers[0].id, ME)
        session = await reach(service, mine.offers[0].id, in_phase(Phase.AVAILABLE))
        [connector] = session.connectors
        assert connector.location.startswith(f"http://127.0.0.1:1/connect/{session.id}/?token=")
        service.presenter.base_url = "https://127.0.0.1:2"  # as after a restart on another port
        [again] = (await service.sessions.get(session.id, ME)).connectors
        assert (again.protocol, again.location.partition("/connect")[0]) == ("HTTPS", "https://127.0.0.1:2")
        [stored] = (await service.store.read(lambda tx: tx.sessions.get(session.id))).connectors
        assert stored.location == f"/connect/{session.id}/"  # without its secret
        ended = await service.sessions.cancel(session.id, ME)
        assert ended.connectors[0].status == "FINISHED"
        assert "token" not in ended.connectors[0].location


async def test_what_the_platform_lost_can_be_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}) as service:
        mine = await ask(service, run=["sleep", "300"], time="1h")
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        await reach(service, id, in_phase(Phase.RUNNING))
        (tmp_path / "platforms" / "here" / "sessions" / id).rename(tmp_path / "gone")
        ended = await service.sessions.cancel(id, ME)
        assert ended.phase is Phase.CANCELLED
        assert ended.end
        assert "no record" in ended.end.detail


class SlowToStart(Local):
    """This machine, where it takes until someone says so to start a program."""

    _begun: threading.Event = PrivateAttr(default_factory=threading.Event)
    _go: threading.Event = PrivateAttr(default_factory=threading.Event)

    def _submit(self, job: Job, session: SessionDir) -> None:
        self._begun.set()
        self._go.wait(30)
        super()._submit(job, session)


async def test_what_is_cancelled_while_it_is_being_started_does_not_run_on(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}) as service:
        slow = SlowToStart(name="here")
        await slow.open(tmp_path / "platforms" / "here")
        service.platforms.by_name["here"] = slow
        mine = await ask(service, run=["sh", "-c", "sleep 300"], time="1h")
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        assert await asyncio.to_thread(slow._begun.wait, 30)
        cancelling = asyncio.create_task(service.sessions.cancel(id, ME))
        await reach(service, id, lambda session: bool(session.cancel_by))
        await asyncio.sleep(0)
        service.signals.nudged.set()
        done, _ = await asyncio.wait([cancelling], timeout=1)
        assert not done, "nobody knows yet whether it runs"
        slow._go.set()
        ended = await over(service, id)
        await cancelling
        assert ended.phase is Phase.CANCELLED
        record = json.loads((tmp_path / "platforms" / "here" / "sessions" / id / "end.json").read_text())
        assert record["kind"] == "cancelled"


async def test_what_was_submitted_before_a_crash_is_found_before_it_is_told_as_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}) as service:
        mine = await ask(service, run=["sleep", "300"], time="1h")
        id = (await service.sessions.accept(mine.offers[0].id, ME)).id
        running = await reach(service, id, in_phase(Phase.RUNNING))
        forgotten = replace(running, phase=Phase.PREPARING, job="", cancel_by="me")  # as a crash after submit leaves it
        step = await STEPS[Phase.PREPARING](build_context(service), forgotten)
        assert (step.to, step.changes) == (None, {"job": id})
        await service.sessions.cancel(id, ME)


async def test_what_another_process_is_about_to_start_is_kept_from_it_by_a_cancel(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}, loop=False) as service:
        mine = await ask(service, run=["true"], time="1h")
        accepted = await service.sessions.accept(mine.offers[0].id, ME)
        place = await service.platforms.by_name["here"].place(accepted.id)
        step = await STEPS[Phase.PREPARING](
            build_context(service), replace(accepted, phase=Phase.PREPARING, cancel_by="me")
        )
        assert step.to is Phase.CANCELLED
        assert place
        assert (place / "ran").is_dir(), "no shim can begin any more"


@pytest.mark.parametrize("phase", [Phase.OFFERED, Phase.WAITING, Phase.RUNNING])
async def test_a_session_can_be_cancelled_in_any_phase_and_says_by_whom(tmp_path: Path, phase: Phase) -> None:
    async with serving(tmp_path, platforms=memory(takes="10h")) as service:
        start = f"{service.now() + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}/PT0S" if phase is Phase.WAITING else "now"
        mine = await ask(service, cores=16, start=start)
        id = mine.offers[0].id
        if phase is not Phase.OFFERED:
            await service.sessions.accept(id, ME)
            await reach(service, id, in_phase(phase))
        ended = await service.sessions.cancel(id, ME)
        assert ended.phase is Phase.CANCELLED
        if phase is not Phase.OFFERED:
            assert ended.end is not None
            assert (ended.end.kind, ended.end.by) == (EndKind.CANCELLED, "me")
        assert (await ask(service, cores=16, start=start)).result == "YES"


async def test_a_platform_that_refuses_fails_the_session_in_its_own_words(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(fault="refuses")) as service:
        mine = await ask(service)
        await service.sessions.accept(mine.offers[0].id, ME)
        ended = await over(service, mine.offers[0].id)
        assert ended.phase is Phase.FAILED
        assert ended.end is not None
        assert ended.end.kind is EndKind.NOT_STARTED
        assert "refused" in ended.end.detail


async def test_a_submission_whose_answer_is_lost_is_found_again_and_not_made_twice(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(fault="loses-answer", takes="1s")) as service:
        mine = await ask(service)
        await service.sessions.accept(mine.offers[0].id, ME)
        session = await reach(service, mine.offers[0].id, lambda s: bool(s.condition) or s.phase is Phase.COMPLETED)
        await service.store.write(lambda tx: tx.sessions.change(session.id, now=service.now(), due=service.now()))
        ended = await over(service, session.id)
        kinds = [event.kind for event in await service.events.events(ME, session=session.id)]
        assert ended.phase is Phase.COMPLETED
        assert kinds.count("session.submitted") == 1


async def test_a_predicted_offer_holds_nothing_and_runs_when_the_queue_lets_it(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(terms="predicted", waits=["0s", "1s", "2s"], takes="1s")) as service:
        mine = await ask(service)
        offer = mine.offers[0].offer
        assert offer.terms.kind == "predicted"
        await service.sessions.accept(mine.offers[0].id, ME)
        ended = await over(service, mine.offers[0].id)
        assert ended.phase is Phase.COMPLETED


async def test_a_remote_offer_carries_its_address(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(terms="remote", takes="1s")) as service:
        mine = await ask(service)
        terms = mine.offers[0].offer.terms
        assert terms.kind == "remote"
        assert terms.url
        await service.sessions.accept(mine.offers[0].id, ME)
        assert (await over(service, mine.offers[0].id)).phase is Phase.COMPLETED


async def test_one_ask_goes_to_every_platform_and_marks_the_terms(tmp_path: Path) -> None:
    both = {"own": {"kind": "memory"}, "queue": {"kind": "memory", "terms": "predicted"}}
    async with serving(tmp_path, platforms=both) as service:
        mine = await ask(service)
        assert {s.offer.terms.kind for s in mine.offers} == {"booked", "predicted"}
        booked = next(s for s in mine.offers if s.offer.platform == "own")
        await service.sessions.accept(booked.id, ME)
        others = [s.phase for s in (await service.asking.offerset(mine.id, ME)).offers if s.id != booked.id]
        assert set(others) == {Phase.REJECTED}


async def test_an_unreachable_platform_is_a_reason_not_an_error(tmp_path: Path) -> None:
    both = {"own": {"kind": "memory"}, "gone": {"kind": "memory", "fault": "unreachable"}}
    async with serving(tmp_path, platforms=both) as service:
        mine = await ask(service)
        assert mine.result == "YES"
        assert [reason.platform for reason in mine.reasons] == ["gone"]


async def test_a_gateway_runs_nothing_uncontained(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway") as service:
        await allow(service)
        refused = await ask(service)
        assert refused.result == "NO"
        assert "container" in refused.reasons[0].message
        assert (await ask(service, run=None, image="docker://busybox")).result == "YES"


async def test_an_unknown_kind_is_a_no(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        document = b'{"executable": {"kind": "https://example.org/x/thing-0.1.yaml"}}'
        refused = await service.asking.ask(ME, await service.asking.read(document, "application/json", ME))
        assert refused.result == "NO"
        assert refused.reasons[0].field == "executable.kind"


async def test_data_of_other_kinds_gets_a_no_that_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        cube = {"kind": "https://x/kinds/data/rucio-data-resource.yaml", "meta": {"name": "cube"}}
        command = {"kind": "urn:sublet:kind:executable:command", "argv": ["true"]}
        document = json.dumps({"executable": command, "data": [cube | {"rucio": {"scope": "x", "object": "y"}}]})
        refused = await service.asking.ask(ME, await service.asking.read(document.encode(), "application/json", ME))
        assert refused.result == "NO"
        assert "It names no Rucio server" in refused.reasons[0].message


async def test_a_job_that_a_shared_queue_starts_late_has_its_whole_time_from_then(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(terms="predicted", waits=["0s", "1s", "2s"], takes="1h")) as service:
        mine = await ask(service, time="30m")
        accepted = await service.sessions.accept(mine.offers[0].id, ME)
        assert accepted.until is None
        running = await reach(service, accepted.id, in_phase(Phase.RUNNING))
        assert running.started is not None
        assert running.until == running.started + timedelta(minutes=30)
        await service.sessions.cancel(running.id, ME)


async def test_what_can_not_be_submitted_before_its_window_has_passed_fails_with_that_reason(tmp_path: Path) -> None:
    slow = memory(terms="predicted", waits=["0s", "0s", "0s"])
    async with serving(tmp_path, platforms=slow) as service:
        mine = await ask(service, start="within 1m")
        await service.sessions.accept(mine.offers[0].id, ME)
        session = await over(service, mine.offers[0].id)
        later = service.now() + timedelta(minutes=5)
        set_clock(service, lambda: later)
        never_seen = replace(session, id=str(uuid4()), phase=Phase.PREPARING, job="")
        step = await STEPS[Phase.PREPARING](build_context(service), never_seen)
        assert step.to is Phase.FAILED
        assert step.changes["end"].kind is EndKind.WINDOW_PASSED


async def test_what_is_asked_for_while_a_step_is_under_way_is_seen(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        seen = (await ask(service, time="1h")).offers[0]
        later = replace(seen, until=service.now() + timedelta(hours=2))
        assert was_changed_meanwhile(seen, later, Step())
        assert was_changed_meanwhile(seen, replace(seen, cancel_by="me"), Step())
        assert not was_changed_meanwhile(seen, seen, Step())
        assert not was_changed_meanwhile(seen, later, Step(changes={"until": later.until}))


class Silent(MemoryPlatform):
    """A platform that doesn't answer, and doesn't say so."""

    _count: int = PrivateAttr(default=0)
    _asked: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        self._count += 1
        if self._count > 1:
            self._asked.set()
        await asyncio.Event().wait()
        return {}

    async def news(self) -> None:
        return None


async def test_a_platform_that_falls_silent_keeps_no_other_waiting(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=memory(takes="0.1s"), poll="0.05s") as service:
        quiet = Silent(name="quiet")
        await quiet.open(tmp_path / "quiet")
        service.platforms.by_name["quiet"] = quiet
        stuck = await ask(service, platform="quiet")
        await service.sessions.accept(stuck.offers[0].id, ME)
        await reach(service, stuck.offers[0].id, lambda session: bool(session.job))
        await asyncio.wait_for(quiet._asked.wait(), 20)  # twice: by the session's own step, and for all
        mine = await ask(service, platform="trial")
        await service.sessions.accept(mine.offers[0].id, ME)
        assert (await over(service, mine.offers[0].id)).phase is Phase.COMPLETED
