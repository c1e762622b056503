"""Runs many calls concurrently under one time limit: a late call loses only its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_few(*questions: Coroutine[Any, Any, T]) -> list[T]:
    """Run the coroutines concurrently and return their results in order.

    A single coroutine is awaited directly: a task of its own would cost more than most of them do.
    """
    return await asyncio.gather(*questions) if len(questions) > 1 else [await question for question in questions]


async def gather_within(
    questions: Mapping[str, Coroutine[Any, Any, T]], seconds: float, waiting: set[str]
) -> dict[str, T | BaseException]:
    """Return each call's result by name, or the exception that it raised, or TimeoutError if it was cancelled.

    `waiting` holds the names of calls that haven't finished yet. Cancelled calls aren't awaited, since they may take
    long to stop.
    """
    tasks = {name: asyncio.create_task(question, name=name) for name, question in questions.items()}
    waiting.update(tasks)
    for task in tasks.values():
        task.add_done_callback(lambda done: waiting.discard(done.get_name()))
    try:
        if tasks:
            await asyncio.wait(tasks.values(), timeout=seconds)
        return {name: _outcome(task) for name, task in tasks.items()}
    finally:
        for task in tasks.values():
            if not task.done():
                task.add_done_callback(_ignore)
                task.cancel()


def _outcome(task: asyncio.Task[T]) -> T | BaseException:
    if not task.done():
        return TimeoutError()
    if task.cancelled():
        return asyncio.CancelledError()
    return task.exception() or task.result()


def _ignore(task: asyncio.Task[Any]) -> None:
    """Retrieve the task's exception, so that asyncio doesn't warn that it was never retrieved."""
    if not task.cancelled():
        task.exception()
