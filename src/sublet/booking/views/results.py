"""Views of the files that sessions leave."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class ResultFileView:
    """A file that a session left."""

    path: str
    size: int
    modified: datetime
    etag: str = ""  # of this version; with it, an interrupted download can resume


@dataclass(frozen=True, kw_only=True)
class ResultList:
    """The files that a session left."""

    items: tuple[ResultFileView, ...]
    size: int = 0  # of all files
    folders: tuple[str, ...] = ()  # empty folders
    kept_until: datetime | None = None  # when they are removed; None: the session isn't over, or they are gone


@dataclass(frozen=True, kw_only=True)
class ResultKeepAsk:
    """How long to keep results, from now on."""

    duration: timedelta


@dataclass(frozen=True, kw_only=True)
class ResultKept:
    """Until when results are kept."""

    kept_until: datetime


@dataclass(frozen=True, kw_only=True)
class SendAsk:
    """Which results to send where."""

    to: str  # the address; one that ends in / is a folder
    path: str = "*"  # a file, a folder, or a pattern
    progress: bool = False  # also report progress: lines with `doing`, `done` and `total`


@dataclass(frozen=True, kw_only=True)
class SentFileView:
    """A result that was sent."""

    path: str
    size: int
    to: str  # its address now
    road: str = ""  # how it was sent, in words; empty: through the service
    was_there: bool = False  # it had been sent before, and is still there


@dataclass(frozen=True, kw_only=True)
class SendProgressView:
    """How far sending has come."""

    doing: str  # what is being sent, in words
    done: int  # bytes
    total: int | None = None
