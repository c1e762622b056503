"""How often tests look whether something has happened."""

from __future__ import annotations

IDLE = 3  # a look is followed by a pause that is so many times as long: others need the cores meanwhile
LONGEST = 1.0
LATER = 0.1  # of the time that was waited already: what takes minutes may be noticed seconds later


def pause(look: float, shortest: float, waited: float = 0) -> float:
    """Seconds until the next look, after one that took this long: what costs much is not done all the time."""
    return max(shortest, min(look * IDLE, LONGEST), min(waited * LATER, 4 * LONGEST))
