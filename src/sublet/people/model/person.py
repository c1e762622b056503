"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who asks."""

    name: str
    operator: bool = False
    reviewer: bool = False  # may decide on apps, as an operator may too
    scope: tuple[str, ...] = ()  # what their token is for; empty: all that they may
    session: str = ""  # the only one that their token is for; empty: any
    until: datetime | None = None  # when their token expires
    guest: bool = False  # of a personal service, where someone else invited them: contained, and only where shared
