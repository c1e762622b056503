"""A session that a fault of the service, or of a plug-in, keeps from going on says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.booking.model.job import Job
from sublet.platforms.memory.platform import MemoryPlatform
from tests.contract.services import ME, ask, over, reach, serving

pytestmark = pytest.mark.anyio


class FaultyPlatform(MemoryPlatform):
    """One that somebody wrote wrong."""

    async def submit(self, job: Job, key: str) -> str:
        """What its author did not think of."""
        raise ZeroDivisionError("/home/somebody/secret")


async def test_a_fault_is_told_in_its_session_which_can_still_be_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path, claim="1s") as service:
        faulty = FaultyPlatform(name="trial")
        await faulty.open(tmp_path / "faulty")
        service.platforms.by_name["trial"] = faulty
        accepted = await service.sessions.accept((await ask(service, time="1m")).offers[0].id, ME)
        stuck = await reach(service, accepted.id, lambda session: "fault of the service" in session.condition)
        assert "ZeroDivisionError" in stuck.condition
        assert "secret" not in stuck.condition, "what a fault says is for the log"
        await service.sessions.cancel(accepted.id, ME)
        await over(service, accepted.id)
