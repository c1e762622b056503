"""Places, as they travel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class PlaceView:
    """A directory of a platform that sessions may name."""

    name: str
    platform: str
    kind: Literal["reference", "shared", "scratch"]
    path: str  # on the platform; of scratch what lies below it, empty: Sublet's own directory
    target: str  # where containers see it
    writable: bool
    keep: float = 0  # seconds that scratch stays after its last use
    quota: int = 0  # bytes that each person's scratch may have; 0: any number
    apps: tuple[str, ...] = ()  # the only ones that may use it
    note: str = ""
    created: datetime
    by: str = ""
    until: datetime | None = None  # when the asker's own scratch there is removed; none: they have none


@dataclass(frozen=True, kw_only=True)
class PlaceList:
    """Places, by platform and name."""

    items: tuple[PlaceView, ...]


@dataclass(frozen=True, kw_only=True)
class PlaceAsk:
    """A place that is to be declared."""

    name: str
    platform: str
    kind: Literal["reference", "shared", "scratch"]
    path: str = ""
    target: str = ""  # empty: /NAME
    writable: bool = False
    keep: float = 0  # seconds; 0: a week
    quota: int = 0  # bytes of each person's scratch; 0: any number
    apps: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ScratchKeep:
    """How long one's own scratch is to be kept from now on."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class ScratchView:
    """One's own scratch."""

    place: str
    platform: str
    until: datetime
