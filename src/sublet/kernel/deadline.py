"""Many questions at once, each with the same time limit: whoever is late costs its own answer only."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_few(*questions: Coroutine[Any, Any, T]) -> list[T]:
    """All answers, in order. A single question is asked here: a task of its own would cost more than most do."""
    return await asyncio.gather(*questions) if len(questions) > 1 else [await question for question in questions]


async def gather_within(
    questions: Mapping[str, Coroutine[Any, Any, T]], seconds: float, waiting: set[str]
) -> dict[str, T | BaseException]:
    """Each answer by name; or what was raised instead; or TimeoutError for one that was stopped because it is late.

    `waiting` names those who have not answered yet. One that is stopped isn't waited for: it may take long to notice.
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
    """Look at how it ended, so that nobody complains of an error that nobody saw."""
    if not task.cancelled():
        task.exception()
