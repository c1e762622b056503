"""Uploads, as they travel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class UploadView:
    """An upload: a folder of files under a name."""

    id: str
    name: str
    address: str  # as data of a request
    created: datetime
    keep_until: datetime  # it is removed then
    files: int
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class UploadList:
    """Uploads, by name, and how much more there is room for."""

    items: tuple[UploadView, ...]
    size: int = 0  # bytes of all of them
    most: int = 0  # bytes that they can have


@dataclass(frozen=True, kw_only=True)
class UploadFileView:
    """A file of an upload."""

    id: str  # it is gone on with, or removed, at /v1/tus/ID
    path: str
    size: int
    offset: int  # bytes that are here
    whole: bool  # it counts
    modified: datetime | None = None  # as on the machine that it came from
    expires: datetime | None = None  # of one that is not whole: it is removed then


@dataclass(frozen=True, kw_only=True)
class UploadShown:
    """An upload with its files."""

    upload: UploadView
    items: tuple[UploadFileView, ...]
    sessions: tuple[str, ...] = ()  # that have not brought their data from it yet


@dataclass(frozen=True, kw_only=True)
class KeepAsk:
    """For how long something is to be kept, from now on."""

    duration: timedelta
