"""Carries out operations of several calls, for the synchronous client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

from sublet.client.call import Call
from sublet.client.following import Following, Pause, Steps, retry, retry_reads
from sublet.client.link import Link
from sublet.kernel.errors import ServiceUnreachable

T = TypeVar("T")


def carry_out(link: Link, steps: Steps[T]) -> T:
    """Carry out the steps one after another, and return their result."""
    return _do_steps(link, retry_reads(steps))


def patiently(link: Link, call: Call[T]) -> T:
    """Make a read-only call, retrying while the service is away temporarily."""
    return _do_steps(link, retry(call))


def _do_steps(link: Link, steps: Steps[T]) -> T:
    move = partial(next, steps)
    while True:
        try:
            step = move()
        except StopIteration as done:
            outcome: T = done.value
            return outcome
        try:
            move = partial(steps.send, _do_step(link, step))
        except ServiceUnreachable as error:
            move = partial(steps.throw, error)


def _do_step(link: Link, step: Call[Any] | Pause) -> Any:
    if isinstance(step, Call):
        return link.do(step)
    time.sleep(step.seconds)
    return None


def follow(link: Link, following: Following) -> Iterator[bytes]:
    """Yield a session's output in pieces, until it is complete."""
    while not following.over:
        try:
            for piece in link.stream(following.call):
                yield following.saw(piece)
            yield following.end_stream(link.do(following.rest))
        except ServiceUnreachable as error:
            time.sleep(following.broke(error).seconds)


def so_far(link: Link, following: Following) -> Iterator[bytes]:
    """Yield a session's output so far, in several calls, since each answer has a limited size."""
    while piece := following.saw(link.do(following.rest).body):
        yield piece
