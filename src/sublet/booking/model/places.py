"""Places: directories of a system that sessions share, as a request names them and as a job has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class PlaceWish:
    """A place that a request wants its session to see."""

    name: str
    path: str = ""  # where the session sees it; empty: as the place was declared
    read_only: bool = False  # the session must not change it, even if the place is writable
    is_needed: bool = True  # the session can't run without it


@dataclass(frozen=True, slots=True)
class BoundPlace:
    """A place as one job sees it."""

    name: str
    path: str  # on the platform, absolute
    target: str  # absolute: inside its container; relative: below its working directory
    read_only: bool = True


def variable_of(name: str) -> str:
    """Return the environment variable that tells a program where a place is."""
    return f"SUBLET_PLACE_{name.upper().replace('-', '_')}"
