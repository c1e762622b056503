"""Finds an image that was unpacked before the session (image_unpacker.py). Travels with the job.

All files of an unpacked image belong to whoever unpacked it. Charliecloud runs as that person. Podman runs as the
image's user, and maps that person to them (`keep-id`), so that the files are that user's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from typing import Any

from sublet.kinds.inside import image_files
from sublet.kinds.inside.container_mounts import can_lay_over
from sublet.kinds.inside.container_tools import Plan, ToolImage, owner_differs

UNPACKED = "unpacked"  # a folder beside the file that stands for it
KEEPS_IDS = (4, 3)  # the first Podman that can map its caller to any user of a container


def name_link(path: str) -> str:
    """Return the name by which a session finds a file's unpacked image, for this version of the file."""
    real = os.path.realpath(path)
    status = os.stat(real)
    return hashlib.sha256(f"{real}\n{status.st_size}\n{status.st_mtime_ns}".encode()).hexdigest()


def find_unpacked(path: str, plan: Plan, *, is_brought: bool) -> dict[str, Any] | None:
    """Return what is known of an unpacked image, with its `root`; None if the session must unpack it.

    Beside a file that is named by its path, anybody may have put something, so only staged files are looked beside.
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
    """Return the image as a directory that sessions share."""
    own = ToolImage(directory=about["root"], config=about["config"], singularity=about["singularity"], shared=True)
    own.owner = find_owner(own.directory, str(own.config["User"])) if owner_differs(own) else ""
    return own


def can_run_unpacked(podman: str, about: dict[str, Any]) -> bool:
    """Whether Podman can run an unpacked archive as it would run the loaded image; if not, it must load it."""
    if about["singularity"]:
        return True  # it can't load these
    image = use_unpacked(about)
    if owner_differs(image):
        if not os.geteuid() or not image.owner:
            return False
        answer = subprocess.run([podman, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.search(r"(\d+)\.(\d+)", answer)
        if version is None or (int(version[1]), int(version[2])) < KEEPS_IDS:
            return False
    return can_lay_over(image.directory)


def find_owner(root: str, user: str) -> str:
    """Return the user an image runs as, as `UID:GID` by its own user list; empty if that isn't known."""
    name, _, group = user.partition(":")
    users = read_table(root, "passwd")
    row = users.get(name) or next((row for row in users.values() if row[2] == name), None)
    uid = row[2] if row else name
    gid = read_table(root, "group").get(group, ["", "", group])[2] if group else row[3] if row else "0"
    return f"{uid}:{gid}" if uid.isdigit() and gid.isdigit() else ""


def read_table(root: str, name: str) -> dict[str, list[str]]:
    """Return the users or groups of an image, by name; its links can't lead outside."""
    try:
        with open(image_files.inside(root, ["etc", name]), encoding="utf-8", errors="replace") as file:
            rows = [line.rstrip("\n").split(":") for line in file]
    except (OSError, image_files.NotAnImage):
        return {}
    return {row[0]: row for row in rows if len(row) > 3}
