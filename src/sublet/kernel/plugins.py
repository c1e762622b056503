"""Plug-ins by the group of their entry points. What is installed is read once: there may be hundreds of packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any

GROUPS = ("sublet.kinds", "sublet.platforms", "sublet.movers")


def list_platform_kinds() -> frozenset[str]:
    """The kinds of platform that are installed, none of which is loaded for it."""
    return frozenset(entry.name for entry in plugins("sublet.platforms"))


def plugins(group: str) -> EntryPoints:
    """Those of a group."""
    entries: EntryPoints = _list_installed().select(group=group)
    return entries


@cache
def _list_installed() -> Any:  # of a class that depends on the version of Python
    return entry_points()
