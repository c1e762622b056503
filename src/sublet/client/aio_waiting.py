"""Carries out operations of several calls, for the asynchronous client."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol, TypeVar

from sublet.client.call import Call
from sublet.client.following import Pause, Steps, retry_reads
from sublet.kernel.errors import ServiceUnreachable

T = TypeVar("T")


class Do(Protocol):
    """A function that sends a call and returns its parsed answer."""

    async def __call__(self, call: Call[T], /) -> T:
        """Send the call."""
        ...


async def carry_out(do: Do, steps: Steps[T]) -> T:
    """Carry out the steps one after another, and return their result."""
    tried = retry_reads(steps)
    move = partial(next, tried)
    while True:
        try:
            step = move()
        except StopIteration as done:
            outcome: T = done.value
            return outcome
        try:
            answer = await (asyncio.sleep(step.seconds) if isinstance(step, Pause) else do(step))
            move = partial(tried.send, answer)
        except ServiceUnreachable as error:
            move = partial(tried.throw, error)
