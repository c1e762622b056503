"""The views of caches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class CacheEntryView:
    """Something that a system keeps for later sessions."""

    digest: str  # sha256:…, oci-sha256:… (an image made there), data:… (known by address and version)
    short: str  # digits by which it can be named
    label: str  # its name and source, for people
    size: int  # bytes
    used: datetime  # last use
    needed_by: tuple[str, ...] = ()  # sessions that need it now


@dataclass(frozen=True, kw_only=True)
class CacheView:
    """The contents of one system's cache."""

    platform: str
    quota: int  # bytes; 0: no limit
    size: int
    entries: tuple[CacheEntryView, ...] = ()
    trouble: str = ""  # why it can't be listed now


@dataclass(frozen=True, kw_only=True)
class CacheList:
    """The caches of all systems."""

    items: tuple[CacheView, ...]


@dataclass(frozen=True, kw_only=True)
class CacheRemoval:
    """The entries that were removed from a cache, or would be."""

    platform: str
    size: int  # bytes
    entries: tuple[CacheEntryView, ...]
    dry_run: bool = False
