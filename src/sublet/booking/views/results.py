"""The files that sessions leave."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class ResultFileView:
    """A file that a session left."""

    path: str
    size: int
    modified: datetime
    etag: str = ""  # of this version of it: what was fetched in part can be fetched on


@dataclass(frozen=True, kw_only=True)
class ResultList:
    """The files that a session left."""

    items: tuple[ResultFileView, ...]
    size: int = 0  # of all of them
    folders: tuple[str, ...] = ()  # that it left with nothing in them
