"""What a platform has no record of any more: it is said, until when that may last is said, and then it ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.service import Service
from tests.contract.services import ME, ask, over, reach, serving

pytestmark = pytest.mark.anyio


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
