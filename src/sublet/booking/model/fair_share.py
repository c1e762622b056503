"""Whose turn it is: an account's places at its site, shared between people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """A session that is at an account's site, or waits to be."""

    session: str
    person: str
    asked: datetime
    taken: datetime | None = None


def next_turns(turns: Iterable[Turn], capacity: int) -> list[str]:
    """The sessions whose turn comes now: each time of the person with the fewest there, then who waits the longest."""
    all = list(turns)
    there = Counter(turn.person for turn in all if turn.taken)
    waiting = [turn for turn in all if not turn.taken]
    chosen: list[str] = []
    while waiting and there.total() < capacity:
        first = min(waiting, key=lambda turn: (there[turn.person], turn.asked, turn.session))
        waiting.remove(first)
        there[first.person] += 1
        chosen.append(first.session)
    return chosen
