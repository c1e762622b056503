"""Fair share: an account's slots at its site, divided between people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """A session that has a slot of an account at its site, or waits for one."""

    session: str
    person: str
    asked: datetime
    taken: datetime | None = None


def next_turns(turns: Iterable[Turn], capacity: int) -> list[str]:
    """Return the sessions that get a free slot: each of the person with the fewest slots, and of these the oldest."""
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
