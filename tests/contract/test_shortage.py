"""A process that can open nothing more judges nobody: what runs is still running once it can."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.core.job import State
from sublet.errors import PlatformUnreachable
from sublet.platforms.conformance import Trial
from sublet.platforms.local import Local
from sublet.reach.local import LocalReach
from sublet.reach.port import Command
from sublet.service.owner import Owner
from sublet.shortage import find_shortage

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
    trial = Trial(platform)
    job = await trial.submit("sleep", "50")
    with nothing_can_be_opened(), pytest.raises(PlatformUnreachable) as told:
        await platform.ask([job])
    assert find_shortage(told.value) == "Too many open files"
    assert (await platform.ask([job]))[job].state is State.RUNNING
    await platform.cancel([job], "the test")
    await trial.ended(job)


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
