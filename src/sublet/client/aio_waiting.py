"""Carries out what takes several calls, by a link that awaits."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, TypeVar

from sublet.client.call import Call
from sublet.client.following import Patience, Pause, Steps
from sublet.errors import ServiceUnreachable

T = TypeVar("T")


class Do(Protocol):
    """Sends a call and reads its answer."""

    async def __call__(self, call: Call[T], /) -> T:
        """Do it."""
        ...


async def carry_out(do: Do, steps: Steps[T]) -> T:
    """Do one step after the other, and return what they lead to."""
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as done:
            outcome: T = done.value
            return outcome
        answer = None
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        else:
            answer = await (patiently(do, step) if step.method == "GET" else do(step))


async def patiently(do: Do, call: Call[T]) -> T:
    """Do what only looks, also where the service is away for a moment."""
    patience = Patience()
    while True:
        try:
            return await do(call)
        except ServiceUnreachable as error:
            await asyncio.sleep(patience.broke(error).seconds)
