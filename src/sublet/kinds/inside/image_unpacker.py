"""Unpacks an image file before sessions need it, for all that will run in it.

Travels to the login host: standard library only. Arguments: the file, the folder, and the path of `unsquashfs` (or
nothing). The folder then has `root`, the image's file system, and `image.json`: its digests, config, size in bytes, and
whether it was a Singularity image (read by container_unpacked.py).
"""

from __future__ import annotations

import json
import os
import stat
import sys
from typing import Any

from sublet.kinds.inside.image_files import Archive, NotAnImage, make_place, make_usual_places, sha256_of, unsquash


def unpack_archive(archive: Archive, root: str) -> dict[str, Any]:
    """Unpack an archive, with each layer checked; return what is known of it."""
    archive.verify_layers()
    archive.unpack(root)
    config = archive.config.get("config") or {}
    for folder in (config.get("WorkingDir"), *(config.get("Volumes") or ())):
        if folder and ".." not in folder.split("/"):
            make_place(root, folder, "folder")  # a tool that loads the image makes these
    return {"digests": archive.list_digests(), "config": config, "singularity": False}


def unpack_squashed(path: str, root: str, unsquashfs: str) -> dict[str, Any]:
    """Unpack a Singularity image; return what is known of it."""
    unsquash(unsquashfs, path, root)
    return {"digests": [sha256_of(path)], "config": {}, "singularity": True}


def settle(root: str) -> int:
    """Make all folders accessible to their owner, who must be able to remove them; return the size in bytes."""
    size = 0
    for folder, folders, names in os.walk(root):
        for name in folders:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) | 0o700)
        size += sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in names)
    return size


def unpack(path: str, folder: str, unsquashfs: str) -> None:
    """Unpack an image file; raise NotAnImage if that isn't possible."""
    root = os.path.join(folder, "root")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        archive = Archive(path)
    except NotAnImage:
        if not unsquashfs:
            raise
        about = unpack_squashed(path, root, unsquashfs)
    else:
        try:
            about = unpack_archive(archive, root)
        finally:
            archive.close()
    os.chmod(root, 0o755)  # noqa: S103 (it is `/` in the container, also for users of the image)
    make_usual_places(root)
    about["size"] = settle(root)
    with open(os.path.join(folder, "image.json"), "w", encoding="utf-8") as file:
        json.dump(about, file)


def main() -> int:
    """Unpack the given file."""
    try:
        unpack(*[*sys.argv[1:], ""][:3])
    except (NotAnImage, OSError) as why:
        sys.stderr.write(f"{why}\n")
        return 65
    return 0


if __name__ == "__main__":
    sys.exit(main())
