"""One piece of work in several parts: which tasks are whose.

A part is told by its environment which it is: SUBLET_PART (from 0) of SUBLET_PARTS. Where the parts see one directory
in common, SUBLET_CLAIMS names it, and who is free takes the next chunk of tasks; where they don't, each has every nth
task. This file travels with the job, so it needs nothing but Python itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

INCOMPLETE = 75  # the exit code by which a program that joins the parts says that some of the work has no result
NONE_LEFT = "none-left"  # made among the claims by who finds nothing left to claim: parts that wait are then spared
CHUNKS = 16  # for each part, so that the last ones to end do so at about the same time
LARGEST = 500  # tasks in a chunk: what is lost at most with a part


@dataclass(frozen=True)
class Part:
    """One of the parts, as it is told."""

    number: int = 0
    of: int = 1
    claims: str = ""  # the directory in which chunks are claimed; empty: the parts have nothing in common


def read_part(environment: Mapping[str, str]) -> Part:
    """Which part this is."""
    number, of = int(environment.get("SUBLET_PART") or 0), int(environment.get("SUBLET_PARTS") or 1)
    return Part(number, of, environment.get("SUBLET_CLAIMS", "") if of > 1 else "")


def chunk_size(tasks: int, parts: int) -> int:
    """How many tasks are claimed at a time: every part comes to the same number."""
    return min(max(1, -(-tasks // (parts * CHUNKS))), LARGEST)


def fair(amount: int, part: Part) -> int:
    """This part's share of an amount that the parts have together."""
    return amount // part.of + (part.number < amount % part.of)


def is_mine(task: int, part: Part) -> bool:
    """Whether a task is this part's, where nothing can be claimed."""
    return task % part.of == part.number


def ranges(numbers: Iterable[int], at_most: int = 20) -> str:
    """Numbers in words: `3-17, 40, 52-60`."""
    texts = [f"{first}-{last}" if last > first else str(first) for first, last in _runs(sorted(numbers))]
    more = [f"and {len(texts) - at_most} more such ranges"] if len(texts) > at_most else []
    return ", ".join(texts[:at_most] + more)


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if last is not None and first is not None and number != last + 1:
            yield first, last
            first = None
        first, last = number if first is None else first, number
    if first is not None and last is not None:
        yield first, last
