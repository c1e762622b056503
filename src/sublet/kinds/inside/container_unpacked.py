"""Finds an image that was unpacked before the session, once for all (image_unpacker.py). Travels with the job."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from sublet.kinds.inside.container_tools import Plan, ToolImage

UNPACKED = "unpacked"  # a folder beside the file that stands for it


def name_link(path: str) -> str:
    """What a session finds the unpacked image of a file by: of that very file, as it was then."""
    real = os.path.realpath(path)
    status = os.stat(real)
    return hashlib.sha256(f"{real}\n{status.st_size}\n{status.st_mtime_ns}".encode()).hexdigest()


def find_unpacked(path: str, plan: Plan, *, is_brought: bool) -> dict[str, Any] | None:
    """What is known of an image that was unpacked, with its `root`; None: the session must unpack it.

    Beside a file that someone named by its path anybody may have put something.
    """
    own = f"{plan['image']}-{name_link(path)}"
    for file in (own, *([path] if is_brought else [])):
        folder = os.path.join(os.path.dirname(os.path.realpath(file)), UNPACKED)
        try:
            with open(os.path.join(folder, "image.json"), encoding="utf-8") as opened:
                return {**json.load(opened), "root": os.path.join(folder, "root")}
        except (OSError, ValueError):
            continue
    return None


def use_unpacked(about: dict[str, Any]) -> ToolImage:
    """The image as a directory that all sessions share."""
    return ToolImage(directory=about["root"], config=about["config"], singularity=about["singularity"], shared=True)
