"""Plug-ins by the group of their entry points. Installed packages are scanned once, since there may be hundreds."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any

GROUPS = ("sublet.kinds", "sublet.platforms", "sublet.movers")


def list_platform_kinds() -> frozenset[str]:
    """Return the installed kinds of platform, without loading any of them."""
    return frozenset(entry.name for entry in plugins("sublet.platforms"))


def plugins(group: str) -> EntryPoints:
    """Return the entry points of a group."""
    entries: EntryPoints = _list_installed().select(group=group)
    return entries


@cache
def _list_installed() -> Any:  # its class depends on the version of Python
    return entry_points()
