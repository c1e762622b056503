"""Finds an image that was unpacked before the session, once for all (image_unpacker.py). Travels with the job.

All files of an unpacked image belong to whoever unpacked it. Charliecloud runs as that person. Podman runs as the user
that the image names, as whom that person then appears in the container (`keep-id`): so its files are that user's.
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
KEEPS_IDS = (4, 3)  # the first Podman that lets its caller appear as another user of a container


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
    own = ToolImage(directory=about["root"], config=about["config"], singularity=about["singularity"], shared=True)
    own.owner = find_owner(own.directory, str(own.config["User"])) if owner_differs(own) else ""
    return own


def can_run_unpacked(podman: str, about: dict[str, Any]) -> bool:
    """Whether Podman runs an archive that was unpacked as it would run what it loads of it; else it must load it."""
    if about["singularity"]:
        return True  # which it can't load
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
    """Who an image runs as, in numbers, `UID:GID`, by its own list of users; empty if that does not say."""
    name, _, group = user.partition(":")
    users = read_table(root, "passwd")
    row = users.get(name) or next((row for row in users.values() if row[2] == name), None)
    uid = row[2] if row else name
    gid = read_table(root, "group").get(group, ["", "", group])[2] if group else row[3] if row else "0"
    return f"{uid}:{gid}" if uid.isdigit() and gid.isdigit() else ""


def read_table(root: str, name: str) -> dict[str, list[str]]:
    """The users or groups of an image, by their names; its links lead nowhere else."""
    try:
        with open(image_files.inside(root, ["etc", name]), encoding="utf-8", errors="replace") as file:
            rows = [line.rstrip("\n").split(":") for line in file]
    except (OSError, image_files.NotAnImage):
        return {}
    return {row[0]: row for row in rows if len(row) > 3}
