"""The views of places."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class PlaceView:
    """A directory of a platform that sessions may request by name."""

    name: str
    platform: str
    kind: Literal["reference", "shared", "scratch"]
    path: str  # on the platform; scratch directories are made below it (empty: below Sublet's own directory)
    target: str  # where containers see it
    writable: bool
    keep: float = 0  # seconds that scratch is kept after its last use
    quota: int = 0  # bytes per person in scratch; 0: no limit
    apps: tuple[str, ...] = ()  # the only apps that may use it; empty: any
    note: str = ""
    created: datetime
    by: str = ""
    until: datetime | None = None  # when the caller's own scratch there is removed; None: they have none


@dataclass(frozen=True, kw_only=True)
class PlaceList:
    """Places, by platform and name."""

    items: tuple[PlaceView, ...]


@dataclass(frozen=True, kw_only=True)
class PlaceAsk:
    """A place to declare."""

    name: str
    platform: str
    kind: Literal["reference", "shared", "scratch"]
    path: str = ""
    target: str = ""  # empty: /NAME
    writable: bool = False
    keep: float = 0  # seconds; 0: a week
    quota: int = 0  # bytes per person in scratch; 0: no limit
    apps: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ScratchKeep:
    """How long to keep one's own scratch from now on."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class ScratchView:
    """One's own scratch."""

    place: str
    platform: str
    until: datetime
