"""The views of uploads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class UploadView:
    """An upload: a folder of files under a name."""

    id: str
    name: str
    address: str  # to use as data in a request
    created: datetime
    keep_until: datetime  # removed then
    files: int
    size: int  # bytes


@dataclass(frozen=True, kw_only=True)
class UploadList:
    """Uploads by name, and the caller's quota."""

    items: tuple[UploadView, ...]
    size: int = 0  # bytes of all of them
    most: int = 0  # bytes allowed


@dataclass(frozen=True, kw_only=True)
class UploadFileView:
    """A file of an upload."""

    id: str  # append to it, or remove it, at /v1/tus/ID
    path: str
    size: int
    offset: int  # bytes that have come
    whole: bool  # whether it is complete
    modified: datetime | None = None  # according to the machine that it came from
    expires: datetime | None = None  # when an incomplete file is removed


@dataclass(frozen=True, kw_only=True)
class UploadShown:
    """An upload with its files."""

    upload: UploadView
    items: tuple[UploadFileView, ...]
    sessions: tuple[str, ...] = ()  # those that haven't staged their data from it yet


@dataclass(frozen=True, kw_only=True)
class KeepAsk:
    """How long to keep something from now on."""

    duration: timedelta
