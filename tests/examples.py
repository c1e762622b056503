"""How many examples a property is tried with: few when they are the same each time, all when others are sought."""

from __future__ import annotations

import os

from hypothesis import settings

SEARCHING = os.environ.get("HYPOTHESIS_PROFILE") == "searching"  # as `make soak` does
PART = 3  # one in so many, of those that are the same each time


def examples(most: int) -> settings:
    """So many, where others are sought."""
    return settings(max_examples=most if SEARCHING else most // PART)
