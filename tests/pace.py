"""How often tests look whether something has happened."""

from __future__ import annotations

IDLE = 3  # a look is followed by a pause that is so many times as long: others need the cores meanwhile
LONGEST = 1.0


def pause(look: float, shortest: float) -> float:
    """Seconds until the next look, after one that took this long: what costs much is not done all the time."""
    return max(shortest, min(look * IDLE, LONGEST))
