"""Draining a platform: what runs finishes or is ended, what waits stays and goes on afterwards, over restarts too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.kernel.errors import NotFound, OperatorsOnly, PlatformDraining
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import LateClock
from tests.contract.services import ME, OTHER, ask, in_phase, reach, serving
from tests.databases import put_database

pytestmark = pytest.mark.anyio
OWNER = Person("owner", operator=True)


def trial(**settings: Any) -> dict[str, dict[str, Any]]:
    return {"trial": {"kind": "memory", "cores": 2, "takes": "1h", **settings}}


async def accept(service: Service, after: timedelta | None = None) -> Session:
    """One that runs at once, or that asked to start then or within a day after."""
    start = service.now().replace(microsecond=0) + (after or timedelta())
    window = {"start": f"{start.isoformat()}/{(start + timedelta(days=1)).isoformat()}"} if after else {}
    mine = await ask(service, time="1h", cores=1, **window)
    return await service.sessions.accept(mine.offers[0].id, ME)


def says(words: str) -> Callable[[Session], bool]:
    return lambda session: words in session.condition


async def events_of(service: Service, id: str) -> list[tuple[str, str]]:
    return [(one.kind, one.detail) for one in await service.events.events(ME, session=id)]


async def test_only_an_operator_drains_and_only_what_there_is(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        for person in (ME, Person("guest", guest=True)):
            with pytest.raises(OperatorsOnly):
                await service.drains.drain(person, "trial")
            with pytest.raises(OperatorsOnly):
                await service.drains.undrain(person, "trial")
        with pytest.raises(NotFound):
            await service.drains.drain(OWNER, "elsewhere")


async def test_what_runs_finishes_and_what_was_offered_is_not_taken(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=trial(takes="2s")) as service:
        offered = (await ask(service, cores=1)).offers[0]
        running = await accept(service)
        await reach(service, running.id, in_phase(Phase.RUNNING))
        await service.drains.drain(OWNER, "trial", reason="cooling.")
        with pytest.raises(PlatformDraining, match=r"trial is being drained by its operator: cooling\."):
            await service.sessions.accept(offered.id, ME)
        said = await ask(service, OTHER)
        assert (said.result, said.reasons[0].message) == ("NO", "trial is being drained by its operator: cooling.")
        assert (await reach(service, running.id, in_phase(Phase.COMPLETED))).end is not None


async def test_explain_says_what_a_drain_does_to_what_runs_and_to_what_waits(tmp_path: Path) -> None:
    async def explain(session: Session) -> str:
        return " ".join((await service.explanations.explain(session.id, ME))[1])

    async with serving(tmp_path, platforms=trial()) as service:
        running = await accept(service)
        await reach(service, running.id, in_phase(Phase.RUNNING))
        waiting = await accept(service, timedelta(hours=3))
        later = await accept(service, timedelta(hours=8))
        until = service.now() + timedelta(hours=6)
        await service.drains.drain(OWNER, "trial", until=until, reason="disks")
        assert f"by its operator until {until:%Y-%m-%d %H:%M} UTC: disks; it may finish." in await explain(running)
        await service.drains.drain(OWNER, "trial", until=until, reason="disks", grace=timedelta(hours=1))
        assert "disks; it is cancelled at" in await explain(running)
        assert "disks; it waits until that is over." in await explain(waiting)
        assert "disks" not in await explain(later), "the drain is over by then"
        await service.drains.undrain(OWNER, "trial")
        assert "disks" not in await explain(running) + await explain(waiting)


async def test_what_waits_is_told_stays_over_a_restart_and_gets_its_whole_time_afterwards(tmp_path: Path) -> None:
    clock = LateClock()
    put_database(tmp_path / "sublet.db")
    settings = Settings.load(tmp_path, platforms=trial())

    def opened() -> AbstractAsyncContextManager[Service]:
        return open_service(settings, now=clock)

    async with opened() as service:
        waiting = await accept(service, timedelta(minutes=10))
        assert waiting.start is not None
        await service.drains.drain(OWNER, "trial", reason="moving racks")
    async with opened() as service:
        clock.later = timedelta(hours=3)
        await service.signals.announce()
        held = await reach(service, waiting.id, says("moving racks"))
        assert held.phase is Phase.WAITING, "though the time that was booked for it is over"
        assert [kind for kind, _ in await events_of(service, waiting.id)].count("session.draining") == 1
        await service.drains.undrain(OWNER, "trial")
        started = await reach(service, waiting.id, in_phase(Phase.RUNNING))
        assert started.start is not None
        assert started.until is not None
        assert started.start > waiting.start + timedelta(hours=2)
        assert started.until - started.start == timedelta(hours=1)
        assert "session.moved" in dict(await events_of(service, waiting.id))


async def test_a_drain_ends_by_itself(tmp_path: Path) -> None:
    clock = LateClock()
    put_database(tmp_path / "sublet.db")
    async with open_service(Settings.load(tmp_path, platforms=trial()), now=clock) as service:
        waiting = await accept(service, timedelta(minutes=10))
        later = await accept(service, timedelta(hours=5))
        await service.drains.drain(OWNER, "trial", until=clock() + timedelta(hours=1))
        assert "session.draining" not in dict(await events_of(service, later.id)), "it begins after that"
        clock.later = timedelta(minutes=30)
        await service.signals.announce()
        await reach(service, waiting.id, says("being drained by its operator until"))
        clock.later = timedelta(minutes=61)
        await service.signals.announce()
        await reach(service, waiting.id, in_phase(Phase.RUNNING))
        assert (await service.usable_platforms.platform("trial", OWNER)).drain is None
        entries = await service.store.read(lambda tx: tx.audit.list(action="platform."))
        assert [(one.action, one.person) for one in entries] == [("platform.drain", "owner"), ("platform.undrain", "")]


async def test_now_ends_what_runs_after_the_grace_and_says_why(tmp_path: Path) -> None:
    clock = LateClock()
    put_database(tmp_path / "sublet.db")
    async with open_service(Settings.load(tmp_path, platforms=trial()), now=clock) as service:
        running, waiting = await accept(service), await accept(service, timedelta(hours=5))
        await reach(service, running.id, in_phase(Phase.RUNNING))
        await service.drains.drain(OWNER, "trial", reason="a fire", grace=timedelta(minutes=5))
        assert "it is cancelled at" in dict(await events_of(service, running.id))["session.draining"]
        assert (await service.sessions.get(running.id, ME)).phase is Phase.RUNNING
        clock.later = timedelta(minutes=6)
        await service.signals.announce()
        ended = await reach(service, running.id, in_phase(Phase.CANCELLED))
        assert ended.end is not None
        assert (ended.end.kind, ended.end.by) == (EndKind.CANCELLED, "owner")
        assert "a fire" in ended.end.detail
        assert (await service.sessions.get(waiting.id, ME)).phase is Phase.WAITING
        drain = (await service.usable_platforms.platform("trial", OWNER)).drain
        assert drain is not None
        assert drain.ends is None


async def test_a_queue_that_others_share_is_drained_too_and_a_window_that_passes_says_why(tmp_path: Path) -> None:
    clock = LateClock()
    put_database(tmp_path / "sublet.db")
    queue = trial(terms="predicted", waits=["0s", "0s", "0s"])
    async with open_service(Settings.load(tmp_path, platforms=queue), now=clock, loop=False) as service:
        mine = await ask(service, time="10m", start="within 1h")
        accepted = await service.sessions.accept(mine.offers[0].id, ME)
        await service.drains.drain(OWNER, "trial", reason="moving")
    async with open_service(Settings.load(tmp_path, platforms=queue), now=clock) as service:
        await reach(service, accepted.id, says("moving"))
        clock.later = timedelta(hours=2)
        await service.signals.announce()
        failed = await reach(service, accepted.id, in_phase(Phase.FAILED))
        assert failed.end is not None
        assert (failed.end.kind, "moving" in failed.end.detail) == (EndKind.WINDOW_PASSED, True)
