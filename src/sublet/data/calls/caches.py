"""Calls about caches: list and remove entries."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.client.call import Call, as_view, path_of
from sublet.data.views.caches import CacheList, CacheRemoval


def caches(platform: str = "") -> Call[CacheList]:
    """List what all systems, or one of them, keep for later sessions."""
    return Call("GET", path_of("caches"), as_view(CacheList), query={"platform": platform})


def remove(platform: str, names: Sequence[str] = (), idle: float = 0, *, dry_run: bool = False) -> Call[CacheRemoval]:
    """Remove entries by name, or all that no session has used for this many seconds."""
    query = {"name": list(names), "idle": idle or None, "dry_run": dry_run}
    return Call("DELETE", path_of("caches", platform), as_view(CacheRemoval), query=query)
