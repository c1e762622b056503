"""What the tests of batch systems ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from sublet.booking.model.job import JobState, State
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.session import End
from sublet.platforms.port import Platform

PATIENCE = 300  # seconds: a scheduler that shares a busy machine takes minutes
MEMORY = 128 << 20


def request_for(platform: str, minutes: int = 10, *windows: Window, cores: int = 1, nodes: int = 1) -> Request:
    """A small request that names a platform."""
    compute = Compute(cores=Range.exactly(cores), nodes=Range.exactly(nodes), memory=Range.exactly(MEMORY))
    executable = Executable("command", "test", {})
    return Request(executable, compute, duration=timedelta(minutes=minutes), windows=windows, platform=platform)


async def wait_until(platform: Platform, key: str, seen: Callable[[JobState], bool]) -> JobState:
    """The state of a job once it is so."""
    async with asyncio.timeout(PATIENCE):
        while not seen(state := (await platform.ask([key]))[key]):  # noqa: ASYNC110 (it happens elsewhere)
            await asyncio.sleep(0.3)
    return state


async def wait_for_end(platform: Platform, key: str) -> End:
    """How a job ended."""
    state = await wait_until(platform, key, lambda state: state.state is State.ENDED)
    assert state.end
    return state.end
