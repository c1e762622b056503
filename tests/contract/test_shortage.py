"""A process that can open nothing more judges nobody: what runs is still running once it can."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import PrivateAttr

from sublet.booking.loop.owner import Owner
from sublet.booking.model.job import Job, State
from sublet.booking.model.phases import Phase
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.kernel.shortage import find_shortage
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.local.platform import Local
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.reach.local import LocalReach
from sublet.reach.port import Command
from tests.contract.services import ME, ask, over, reach, serving

pytestmark = pytest.mark.anyio


@contextlib.contextmanager
def nothing_can_be_opened() -> Iterator[None]:
    """No descriptor is left to this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/", os.O_RDONLY)  # the lowest number that is free
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    held = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open("/", os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in held:
            os.close(file)


async def test_a_job_is_not_taken_for_lost_by_a_service_without_descriptors(tmp_path: Path) -> None:
    platform = Local(name="here")
    await platform.open(tmp_path)
    trial = ConformanceTrial(platform)
    job = await trial.submit("sleep", "50")
    with nothing_can_be_opened(), pytest.raises(PlatformUnreachable) as told:
        await platform.ask([job])
    assert find_shortage(told.value) == "Too many open files"
    assert (await platform.ask([job]))[job].state is State.RUNNING
    await platform.cancel([job], "the test")
    await trial.wait_for_end(job)


async def test_a_command_that_could_not_be_started_for_want_of_descriptors_was_not_refused() -> None:
    reach = LocalReach()
    with nothing_can_be_opened(), pytest.raises((PlatformUnreachable, OSError)) as told:
        await reach.run(Command(("true",), lambda outcome: outcome.code))
    assert find_shortage(told.value) == "Too many open files"
    assert await reach.run(Command(("true",), lambda outcome: outcome.code)) == 0


def test_another_process_is_not_taken_for_dead_by_one_without_descriptors() -> None:
    owner = Owner.here()
    with nothing_can_be_opened(), pytest.raises(OSError, match="Too many open files"):
        owner.lives()
    assert owner.lives()


class Scarce(MemoryPlatform):
    """Refuses in its own words, as plug-ins may, what it has no descriptors for at first."""

    _failures: list[int] = PrivateAttr(default_factory=lambda: [errno.ENOMEM, errno.EMFILE])

    async def submit(self, job: Job, key: str) -> str:
        if self._failures:
            number = self._failures.pop()
            try:
                raise OSError(number, os.strerror(number))
            except OSError as error:
                raise PlatformRefused(platform=self.name, why=f"no: {error}") from error
        return await super().submit(job, key)


async def test_a_session_waits_for_what_the_machine_is_short_of_and_does_not_fail(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        platform = Scarce(name="trial")
        await platform.open(tmp_path / "platforms" / "trial")
        service.platforms.by_name["trial"] = platform
        [offer, *_] = (await ask(service, time="1h")).offers
        await service.sessions.accept(offer.id, ME)
        waiting = await reach(service, offer.id, lambda session: "Too many open files" in session.condition)
        assert waiting.phase is Phase.PREPARING
        assert (await over(service, offer.id)).phase is Phase.COMPLETED
