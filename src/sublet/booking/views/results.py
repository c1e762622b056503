"""The files that sessions leave."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


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
    kept_until: datetime | None = None  # they are removed then; None: it is not over


@dataclass(frozen=True, kw_only=True)
class ResultKeepAsk:
    """For how long results are to be kept, from now on."""

    duration: timedelta


@dataclass(frozen=True, kw_only=True)
class ResultKept:
    """Until when results are kept."""

    kept_until: datetime


@dataclass(frozen=True, kw_only=True)
class SendAsk:
    """Which results are to be sent where."""

    to: str  # the address; of a folder, if it ends in /
    path: str = "*"  # a file, a folder, or a pattern
    progress: bool = False  # tell how far each file is, too: lines with `doing`, `done` and `total`


@dataclass(frozen=True, kw_only=True)
class SentFileView:
    """A result that was sent."""

    path: str
    size: int
    to: str  # where it is now
    road: str = ""  # who sent it, in words; empty: it went through the service
    was_there: bool = False  # it was sent before, and is there still


@dataclass(frozen=True, kw_only=True)
class SendProgressView:
    """How far sending is."""

    doing: str  # what is being sent, in words
    done: int  # bytes
    total: int | None = None
