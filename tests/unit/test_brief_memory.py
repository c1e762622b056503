"""What many ask for at once is looked up once, and soon looked up anew."""

from __future__ import annotations

import asyncio

import pytest

from sublet.kernel.brief_memory import BriefMemory

pytestmark = pytest.mark.anyio


async def test_many_who_ask_at_once_look_once_and_later_ones_look_anew() -> None:
    time, looks = [0.0], 0

    async def look() -> int:
        nonlocal looks
        await asyncio.sleep(0)
        looks += 1
        return looks

    memory: BriefMemory[int] = BriefMemory(1.0, lambda: time[0])
    assert await asyncio.gather(*(memory.recall("a", look) for _ in range(5))) == [1] * 5
    assert await memory.recall("b", look) == 2
    time[0] = 2.0
    assert await memory.recall("a", look) == 3
    memory.forget()
    assert await memory.recall("a", look) == 4


async def test_a_look_that_failed_is_made_again() -> None:
    memory: BriefMemory[int] = BriefMemory(1.0)

    async def fail() -> int:
        raise ValueError("not now")

    async def succeed() -> int:
        return 1

    with pytest.raises(ValueError, match="not now"):
        await memory.recall("a", fail)
    assert await memory.recall("a", succeed) == 1
