"""Caches, as they travel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class CacheEntryView:
    """Something that a system keeps for later sessions."""

    digest: str  # sha256:…, oci-sha256:… (an image made there), data:… (known by address and version)
    short: str  # digits by which it can be named
    label: str  # what people call it, and where it came from
    size: int  # bytes
    used: datetime  # when it was last needed
    needed_by: tuple[str, ...] = ()  # sessions that need it now


@dataclass(frozen=True, kw_only=True)
class CacheView:
    """What one system keeps."""

    platform: str
    quota: int  # bytes; 0: no limit
    size: int
    entries: tuple[CacheEntryView, ...] = ()
    trouble: str = ""  # why it can't be asked now


@dataclass(frozen=True, kw_only=True)
class CacheList:
    """What systems keep, each for itself."""

    items: tuple[CacheView, ...]


@dataclass(frozen=True, kw_only=True)
class CacheRemoval:
    """What was removed from a cache, or would be."""

    platform: str
    size: int  # bytes
    entries: tuple[CacheEntryView, ...]
    dry_run: bool = False
