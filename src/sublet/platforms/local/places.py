"""Directories of this machine that sessions share, and each person's own scratch."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.sessiondir import remove_tree

VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
GONE = ".gone."


def open_place(platform: str, home: Path, path: str, scratch: str) -> str:
    """Return the full path of an existing directory, or of one person's scratch, which is created."""
    return make_scratch(platform, home, path, scratch) if scratch else find_directory(platform, path)


def find_directory(platform: str, path: str) -> str:
    """Return the full path of a directory; it may begin with `~/` or an environment variable of the service."""
    if match := VARIABLE.match(path):
        value = os.environ.get(match[1], "")
        if not value:
            raise PlatformRefused(platform=platform, why=f"{match[0]} is not set there")
        path = value + path[match.end() :]
    full = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(full):
        raise PlatformRefused(platform=platform, why=f"{path} is not a directory there")
    if not os.access(full, os.R_OK | os.X_OK):
        raise PlatformRefused(platform=platform, why=f"{path} can't be read there")
    return full


def make_scratch(platform: str, home: Path, path: str, name: str) -> str:
    """Create one person's scratch directory, in a directory that nobody else can enter."""
    above = _find_above(platform, home, path)
    for directory in (above, above / name):
        directory.mkdir(mode=0o700, exist_ok=True)
        seen = directory.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            raise PlatformRefused(platform=platform, why=f"{directory} is not a directory of this account")
    above.chmod(0o700)
    return str(above / name)


def measure(path: str) -> int:
    """Return the disk usage in bytes of the files below a directory; files removed meanwhile don't count."""
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return size


def remove_scratch(platform: str, home: Path, path: str, name: str) -> None:
    """Remove a person's scratch, and complete an earlier removal that was interrupted."""
    above = _find_above(platform, home, path)
    if (above / name).is_symlink():
        (above / name).unlink()
    elif (above / name).is_dir():
        (above / name).rename(above / f"{GONE}{uuid4()}")
    for left in above.glob(f"{GONE}*"):
        remove_tree(left)


def _find_above(platform: str, home: Path, path: str) -> Path:
    """Return the directory that contains all scratch directories of a place."""
    if not path:
        return home / "places"
    base = find_directory(platform, path)
    mode = os.stat(base).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise PlatformRefused(platform=platform, why=f"everyone can write in {base}, which has no sticky bit")
    return Path(base, f"sublet-{os.geteuid()}")
