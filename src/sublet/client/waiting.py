"""Carries out what takes several calls, by a link that waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, TypeVar

from sublet.client.call import Call
from sublet.client.following import Following, Patience, Pause, Steps
from sublet.client.link import Link
from sublet.errors import ServiceUnreachable

T = TypeVar("T")


def carry_out(link: Link, steps: Steps[T]) -> T:
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
            time.sleep(step.seconds)
        else:
            answer = patiently(link, step) if step.method == "GET" else link.do(step)


def patiently(link: Link, call: Call[T]) -> T:
    """Do what only looks, also where the service is away for a moment."""
    patience = Patience()
    while True:
        try:
            return link.do(call)
        except ServiceUnreachable as error:
            time.sleep(patience.broke(error).seconds)


def follow(link: Link, following: Following) -> Iterator[bytes]:
    """What a session prints, in pieces, until there can't be more."""
    while not following.over:
        try:
            for piece in link.stream(following.call):
                yield following.saw(piece)
            yield following.ended(link.do(following.rest))
        except ServiceUnreachable as error:
            time.sleep(following.broke(error).seconds)


def so_far(link: Link, following: Following) -> Iterator[bytes]:
    """What a session has printed by now: one answer after the other, because an answer has a limit."""
    while piece := following.saw(link.do(following.rest).body):
        yield piece
