"""The volumes of a Compose file's services: only the session's own files.

Travels with the job: standard library only.
"""

from __future__ import annotations

import os
from typing import Any


class BadVolume(Exception):
    """A volume can't be mounted; the message says why."""


def place_volumes(plan: dict[str, Any], service: dict[str, Any]) -> list[list[Any]]:
    """Return a service's volumes as mounts: source, target, and whether read-only.

    Called before any service runs, so that links are resolved once. As no volume lies inside another, no service can
    replace another's source by a link before that starts.
    """
    mounts = []
    for source, target, read_only, is_named in service["volumes"]:
        folder = f"{plan['session']}/volumes/{source}" if is_named else os.path.join(os.getcwd(), source)
        if not os.path.lexists(folder):
            os.makedirs(folder, mode=0o755)
        real = os.path.realpath(folder)
        if not is_inside(real, os.path.realpath(plan["session"])):
            raise BadVolume(f"{source} leads to {real}, which is no file of this session")
        is_brought = is_inside(real, os.path.realpath(f"{plan['session']}/data"))
        may_write = any(is_inside(real, os.path.realpath(path)) for path in plan["writable"])
        mounts.append([real, target, read_only or (is_brought and not may_write)])
    return mounts


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies in it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def refuse_nested(mounts: list[list[Any]]) -> None:
    """Raise BadVolume if one source lies in another, whose service could replace it."""
    sources = sorted({source for source, _, _ in mounts})
    for first in sources:
        for other in sources:
            if first != other and is_inside(other, first):
                raise BadVolume(f"{other} lies in {first}: of two volumes none may lie in the other")
