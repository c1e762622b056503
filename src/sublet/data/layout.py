"""Lays out staged data in the working directory, as a session's own copy that it may change.

Writable data that the executable wants below its working directory is moved there instead of being mounted, so that
programs find their files side by side on any platform. `brought.json` records what was laid out, so that unchanged
files aren't taken for results.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from sublet.booking.model.request import Data, Request, Volume
from sublet.kernel.errors import DataNotThere
from sublet.kernel.value_names import directory_name

KEEPS_NAMES = ("session", "upload", "ssh", "sftp", "rsync", "rsync+ssh")  # a file of another name is out of a folder
BROUGHT = "brought.json"  # in a session's directory: size and time of each file, or empty FOLDER/, that was laid out


def list_laid_out(request: Request) -> list[tuple[Data, Volume]]:
    """List the data that goes into the working directory, with the volume that says where."""
    data = {item.name: item for item in request.data if not item.storage}
    return [
        (data[volume.resource], volume)
        for volume in request.compute.volumes
        if volume.resource in data and not volume.read_only and not volume.path.startswith("/")
    ]


def lay_out(request: Request, place: Path, elsewhere: Collection[str] = ()) -> None:
    """Move staged data into the working directory; raise DataNotThere if something is in its way.

    Data named in `elsewhere` is on the system already and is laid out there.
    """
    items = [item for item in list_laid_out(request) if item[0].name not in elsewhere]
    if not items:
        return
    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)  # left by an interrupted attempt: nothing has run here yet
    work.mkdir(mode=0o700, parents=True)
    for data, volume in sorted(items, key=lambda item: item[1].path != "."):
        folder = place / "data" / directory_name(data.name)
        file = _one_file(data, folder, volume.path)
        _move(data, file or folder, work / volume.path)
        if file:
            folder.rmdir()
    note_brought(place)


def note_brought(place: Path) -> None:
    """Record what was laid out in a session's working directory, before the session runs."""
    (place / BROUGHT).write_text(json.dumps({path: [size, time] for path, size, time in _files(place / "work")}))


def _one_file(data: Data, folder: Path, path: str) -> Path | None:
    """Return the data's only file if the path names that file; None if the path names a folder."""
    entries = sorted(folder.iterdir())
    if len(entries) != 1 or not entries[0].is_file() or not is_file_address(data):
        return None
    location = "" if urlsplit(data.location).scheme in KEEPS_NAMES else data.location
    return entries[0] if is_path_of_file(path, entries[0].name, location) else None


def is_path_of_file(path: str, name: str, location: str) -> bool:
    """Whether a path names the data's only file, rather than a folder to put the file in."""
    return os.path.basename(path) in (name, os.path.basename(_path_of(location))) or ends_like(path, name)


def ends_like(path: str, name: str) -> bool:
    """Whether a path ends like a file's name, as `in.csv` does like `x.csv`."""
    suffix = PurePosixPath(name).suffix
    return bool(suffix) and PurePosixPath(path).suffix == suffix


def is_file_address(data: Data) -> bool:
    """Whether data may be a single file by its address: what is only one file may still be the content of a folder."""
    if data.unpack or data.location.startswith("git+") or data.location.endswith("/"):
        return False
    return not os.path.isdir(_path_of(data.location))


def _path_of(location: str) -> str:
    return unquote(urlsplit(location).path) if ":" in location else location


def _move(data: Data, source: Path, target: Path) -> None:
    if source.is_dir() and target.is_dir():
        for entry in sorted(source.iterdir()):
            _move(data, entry, target / entry.name)
        source.rmdir()
    elif os.path.lexists(target):
        why = f"{target.name} would be where something else is already"
        raise DataNotThere(name=data.name, location=data.location, why=why)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)


def _files(work: Path) -> list[tuple[str, int, int]]:
    files = []
    for folder, folders, names in os.walk(work):
        if not folders and not names and Path(folder) != work:
            files.append((f"{Path(folder).relative_to(work)}/", 0, 0))
        for name in names:
            path = Path(folder, name)
            seen = path.lstat()
            files.append((str(path.relative_to(work)), seen.st_size, seen.st_mtime_ns))
    return files
