"""What a platform has no record of any more: it is said, until when that may last is said, and then it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import PrivateAttr

from sublet.booking.model.job import JobState, State
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Session
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.service import Service
from tests.clocks import LateClock, set_clock
from tests.contract.services import ME, ask, over, reach, serving

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that could not be reached is asked again soon."""
    monkeypatch.setattr("sublet.booking.loop.reconcile.AGAIN", timedelta(seconds=0.5))


class LosesCancels(MemoryPlatform):
    """A queue that records a cancellation, as Slurm's job directories do, and whose answer to it is lost."""

    _cancelled: dict[str, str] = PrivateAttr(default_factory=dict)
    _forgets: bool = False

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """It is done, and nobody learns of it."""
        self._cancelled |= dict.fromkeys(ids, by)
        raise PlatformUnreachable(platform=self.name, why="the connection broke")

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """What was cancelled has ended; of the others a queue that lost its state knows nothing."""
        states = {} if self._forgets else await super().ask(ids)
        now = datetime.now(UTC)
        ends = {
            id: JobState(State.ENDED, End(EndKind.CANCELLED, by=by, detail="it had not started"), now, now)
            for id, by in self._cancelled.items()
        }
        return {id: ends.get(id) or states.get(id) or JobState(State.UNKNOWN) for id in ids}


async def lose_cancels(service: Service, home: Path) -> LosesCancels:
    platform = LosesCancels(name="cluster", terms="predicted")
    await platform.open(home / "loses-cancels")
    service.platforms.by_name["cluster"] = platform
    return platform


def is_lost(session: Session) -> bool:
    return session.lost is not None


async def wait_in_queue(service: Service) -> Session:
    """A session that its platform has in its queue."""
    id = (await service.sessions.accept((await ask(service, time="1h")).offers[0].id, ME)).id
    return await reach(service, id, lambda session: bool(session.job))


async def test_what_a_queue_forgot_ends_as_never_started(tmp_path: Path) -> None:
    platforms = {"cluster": {"kind": "memory", "terms": "predicted"}}
    async with serving(tmp_path, platforms=platforms, lost_after="1s", poll="1s") as service:
        session = await wait_in_queue(service)
        await service.platforms.by_name["cluster"].clean(session.id)  # as a controller that lost its state
        lost = await reach(service, session.id, is_lost)
        assert lost.phase is Phase.PREPARING
        assert "no record of it; if that stays so, it is given up at" in lost.condition
        ended = await over(service, session.id)
        assert (ended.phase, ended.started) == (Phase.FAILED, None)
        assert ended.end
        assert ended.end.kind is EndKind.NOT_STARTED
        assert ended.end.detail.startswith("It never ran: cluster lost it while it waited in the queue")


async def test_what_is_found_again_in_time_goes_on(tmp_path: Path) -> None:
    waits = ["1s", "2s", "3s"]
    platforms = {"cluster": {"kind": "memory", "terms": "predicted", "waits": waits, "takes": "1s"}}
    async with serving(tmp_path, platforms=platforms, poll="1s") as service:
        session = await wait_in_queue(service)
        lost = service.now() - timedelta(minutes=1)
        await service.store.write(lambda tx: tx.sessions.change(session.id, now=lost, lost=lost, due=service.now()))
        ended = await over(service, session.id)
        assert (ended.phase, ended.lost) == (Phase.COMPLETED, None)


PREDICTED = {"cluster": {"kind": "memory", "terms": "predicted"}}


async def test_what_a_queue_forgot_was_not_cancelled_though_the_answer_that_ends_it_is_lost(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PREDICTED, lost_after="1s", poll="1s") as service:
        platform = await lose_cancels(service, tmp_path)
        session = await wait_in_queue(service)
        platform._forgets = True
        ended = await over(service, session.id, seconds=40)
    assert ended.end
    assert (ended.end.kind, ended.started) == (EndKind.NOT_STARTED, None)
    assert ended.end.detail.startswith("It never ran: cluster lost it while it waited in the queue")


async def test_what_waited_too_long_was_not_cancelled_though_the_answer_that_ends_it_is_lost(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PREDICTED, poll="1s") as service:
        await lose_cancels(service, tmp_path)
        start = f"{service.now().isoformat()}/PT10M"
        id = (await service.sessions.accept((await ask(service, time="1h", start=start)).offers[0].id, ME)).id
        await reach(service, id, lambda session: bool(session.job))
        set_clock(service, LateClock(timedelta(minutes=12)))
        ended = await over(service, id, seconds=40)
    assert ended.end
    assert ended.end.kind is EndKind.WINDOW_PASSED
