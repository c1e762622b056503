"""How long tests wait between two polls."""

from __future__ import annotations

IDLE = 3  # the pause is this many times as long as the poll took, so that polling doesn't use up the cores
LONGEST = 1.0  # seconds: the limit of such a pause
LATER = 0.1  # backoff: a pause is at least this part of the time waited so far (up to 4 s)


def pause(look: float, shortest: float, waited: float = 0) -> float:
    """Seconds until the next poll, after one that took `look` seconds, `waited` seconds into the wait."""
    return max(shortest, min(look * IDLE, LONGEST), min(waited * LATER, 4 * LONGEST))
