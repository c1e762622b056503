"""The roads by which data gets to where a session runs, and what is remembered of the one that was taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Road(StrEnum):
    """How data gets there, the best road first."""

    CACHED = "cached"  # it was there already
    LINKED = "linked"  # another session left it on the same system
    COPIED = "copied"  # it lies on the system itself
    MOVED = "moved"  # a service of transfers moved it there
    THERE = "there"  # the system fetches it by itself
    STREAMED = "streamed"  # past this machine's disk, over the one login
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
    """How one item of data got to its session."""

    data: str  # its name
    road: Road
    source: str  # the host that it came from
    bytes: int
    seconds: float
    why: str = ""  # why no better road was taken; empty: this is the best

    def describe(self, platform: str) -> str:
        """In a few words."""
        words = ROAD_TEXTS[self.road].format(platform=platform, source=self.source or "this machine")
        amount = f" ({describe_bytes(self.bytes)} in {self.seconds:.1f} s)"
        return f"{self.data} {words}{amount}{f'; {self.why}' if self.why else ''}"


def describe_bytes(number: int) -> str:
    """A number of bytes as people write it."""
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@dataclass(frozen=True, slots=True)
class CachedItem:
    """What is in a cache, as far as it matters for making room."""

    name: str
    size: int
    used: float  # when it was last needed
    is_needed: bool  # a session needs it now


def choose_evictions(items: Sequence[CachedItem], room: int, quota: int) -> list[str]:
    """The items that make room for so many bytes more, those first that were not needed for the longest time.

    What a session needs is never among them, so that a cache may be larger than its quota for a while; 0 is no quota.
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
