"""The roads by which data reaches a session's system, and the record of the one that was taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Road(StrEnum):
    """How data reaches a system, best road first."""

    CACHED = "cached"  # was in its cache
    LINKED = "linked"  # another session left it on the same system
    COPIED = "copied"  # was on the system itself
    MOVED = "moved"  # moved by a transfer service
    THERE = "there"  # fetched by the system itself
    STREAMED = "streamed"  # streamed over the login, without this machine's disk
    HERE = "here"  # brought here first, and sent from here


ROAD_TEXTS = {
    Road.CACHED: "was in the cache of {platform}",
    Road.LINKED: "was left on {platform} by another session",
    Road.COPIED: "was copied on {platform}, where it lies",
    Road.MOVED: "was moved from {source} to {platform} by Globus",
    Road.THERE: "was fetched by {platform} from {source}",
    Road.STREAMED: "was streamed from {source} to {platform}",
    Road.HERE: "was brought here from {source}",
}


@dataclass(frozen=True, slots=True)
class TakenRoad:
    """How one item of data reached its session."""

    data: str  # its name
    road: Road
    source: str  # the host that it came from
    bytes: int
    seconds: float
    why: str = ""  # why no better road was taken; empty: this was the best

    def describe(self, platform: str) -> str:
        """Describe the road, its source, size and time in a few words."""
        words = ROAD_TEXTS[self.road].format(platform=platform, source=self.source or "this machine")
        amount = f" ({describe_bytes(self.bytes)} in {self.seconds:.1f} s)"
        return f"{self.data} {words}{amount}{f'; {self.why}' if self.why else ''}"


def describe_bytes(number: int) -> str:
    """Format a number of bytes for people."""
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@dataclass(frozen=True, slots=True)
class CachedItem:
    """A cache entry, as far as eviction needs to know it."""

    name: str
    size: int
    used: float  # last use
    is_needed: bool  # a session needs it now


def choose_evictions(items: Sequence[CachedItem], room: int, quota: int) -> list[str]:
    """Choose the least recently used items to remove, so that so many more bytes fit the quota.

    Items that a session needs are never chosen, so a cache may exceed its quota for a while. A quota of 0 means no
    limit.
    """
    if not quota:
        return []
    excess = sum(item.size for item in items) + room - quota
    chosen = []
    for item in sorted(items, key=lambda item: item.used):
        if excess <= 0:
            break
        if not item.is_needed:
            chosen.append(item.name)
            excess -= item.size
    return chosen
