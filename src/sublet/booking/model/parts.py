"""Work in several parts: which part runs which tasks.

A part learns from its environment which it is: SUBLET_PART (from 0) of SUBLET_PARTS. Where the parts share a
directory, SUBLET_CLAIMS names it, and a part that is free claims the next chunk of tasks; elsewhere each part runs
every nth task. This file travels with the job, so it uses the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

INCOMPLETE = 75  # the exit code of the join program if some of the work has no result
NONE_LEFT = "none-left"  # a file among the claims: nothing is left to claim, so parts that haven't begun are dropped
CHUNKS = 16  # for each part, so that all parts end at about the same time
LARGEST = 500  # tasks in a chunk: the most that are lost with a part


@dataclass(frozen=True)
class Part:
    """One of the parts: its number, how many there are, and where they claim tasks."""

    number: int = 0
    of: int = 1
    claims: str = ""  # the directory in which chunks are claimed; empty: the parts share none


def read_part(environment: Mapping[str, str]) -> Part:
    """Read from the environment which part this is."""
    number, of = int(environment.get("SUBLET_PART") or 0), int(environment.get("SUBLET_PARTS") or 1)
    return Part(number, of, environment.get("SUBLET_CLAIMS", "") if of > 1 else "")


def chunk_size(tasks: int, parts: int) -> int:
    """Return how many tasks are claimed at a time; every part computes the same number."""
    return min(max(1, -(-tasks // (parts * CHUNKS))), LARGEST)


def fair(amount: int, part: Part) -> int:
    """Return this part's share of an amount that all parts have together."""
    return amount // part.of + (part.number < amount % part.of)


def is_mine(task: int, part: Part) -> bool:
    """Whether a task is this part's, where the parts share no directory for claims."""
    return task % part.of == part.number


def ranges(numbers: Iterable[int], at_most: int = 20) -> str:
    """Format numbers as ranges: `3-17, 40, 52-60`."""
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
