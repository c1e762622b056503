"""One entry of the cache on this machine: the files in its folder.

content       a file, or a folder of files, read-only, once it is complete
record.json   its size in bytes, and the size and time of each file as it was published
label         its name for people
users/KEY     an empty file for each session that needs it
used          when it was last needed
weight        how many bytes it takes elsewhere: an image in the store of a container tool
claim         the process that transfers it, touched as a heartbeat
part, part.d  what has arrived so far: of a file, of a folder
arriving-*    what a mover or the unpacker writes by itself, a folder for each attempt (see receiving.py)
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sublet.data.model.links import LinkedFiles
from sublet.kernel.checksums import compute_checksum
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.claims import ServiceProcess
from sublet.platforms.local.cloning import remove

SILENT = 90.0  # seconds without a heartbeat after which another process may take over
READABLE, RUNNABLE = 0o444, 0o555
ROOM = "arriving-"


class LocalEntry:
    """A folder of the cache."""

    def __init__(self, folder: Path) -> None:
        """Compute the paths without creating anything."""
        self.folder = folder
        self.content = folder / "content"
        self.claim_file = folder / "claim"
        self._record = folder / "record.json"

    def need(self, user: str, label: str) -> None:
        """Record that a session needs the entry now."""
        (self.folder / "users").mkdir(mode=0o700, parents=True, exist_ok=True)
        if user:
            (self.folder / "users" / user).touch(0o600)
        (self.folder / "used").touch(0o600)
        if label and not (self.folder / "label").exists():
            (self.folder / "label").write_text(label)

    @property
    def users(self) -> list[str]:
        """The sessions that have recorded a need for the entry."""
        try:
            return sorted(os.listdir(self.folder / "users"))
        except FileNotFoundError:
            return []

    def forget(self, user: str) -> None:
        """Record that a session no longer needs the entry."""
        (self.folder / "users" / user).unlink(missing_ok=True)

    @property
    def used(self) -> datetime:
        """When the entry was last needed."""
        try:
            return datetime.fromtimestamp((self.folder / "used").stat().st_mtime, UTC)
        except FileNotFoundError:
            return datetime.fromtimestamp(self.folder.stat().st_mtime, UTC)

    @property
    def label(self) -> str:
        """The entry's name for people."""
        try:
            return (self.folder / "label").read_text()
        except FileNotFoundError:
            return ""

    def read_record(self) -> dict[str, Any] | None:
        """Read the record of the published content; None if nothing was published."""
        try:
            record: dict[str, Any] = json.loads(self._record.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return record

    @property
    def size(self) -> int:
        """The size of the entry in bytes, also while it is incomplete."""
        record = self.read_record()
        return int(record["size"]) + self._weight if record else self.arrived

    @property
    def _weight(self) -> int:
        try:
            return int((self.folder / "weight").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def set_weight(self, bytes: int) -> None:
        """Record how many bytes the entry takes elsewhere."""
        (self.folder / "weight").write_text(str(bytes))

    def withdraw(self) -> None:
        """Withdraw the published content."""
        self._record.unlink(missing_ok=True)

    def is_whole(self) -> bool:
        """Whether the content is complete and unchanged since it was published."""
        record = self.read_record()
        if record is None or not self.content.exists():
            return False
        return bool({path: [size, at] for path, size, at in _list_files(self.content)} == record["files"])

    def part(self, path: str) -> Path:
        """Return the path of a file until it is complete; an entry that is a single file has the path ''."""
        if not path:
            return self.folder / "part"
        if path.startswith("/") or ".." in Path(path).parts:
            raise PlatformRefused("It has a file whose name can't be used here.")
        return self.part_folder / path

    @property
    def part_folder(self) -> Path:
        """The path of a folder until it is complete."""
        return self.folder / "part.d"

    def new_room(self) -> Path:
        """Return the path of a new attempt's own folder."""
        return self.folder / f"{ROOM}{os.urandom(6).hex()}"

    def list_rooms(self) -> list[Path]:
        """List the folders of attempts, the latest last."""
        rooms = []
        for room in self.folder.glob(f"{ROOM}*"):
            with suppress(FileNotFoundError):
                rooms.append((room.stat().st_mtime_ns, room))
        return [room for _, room in sorted(rooms)]

    def drop_parts(self) -> None:
        """Remove all that has arrived and isn't published."""
        remove(self.part(""))
        remove(self.part_folder)
        for room in self.list_rooms():
            shutil.rmtree(room, ignore_errors=True)

    @property
    def arrived(self) -> int:
        """How many bytes have arrived so far."""
        sizes = [*self.measure().values(), *(size for room in self.list_rooms() for _, size, _ in _list_files(room))]
        return sum(sizes)

    def measure(self) -> dict[str, int]:
        """Return the sizes of the files that have arrived so far."""
        sizes = {path: size for path, size, _ in _list_files(self.part_folder) if path}
        with suppress(FileNotFoundError):
            sizes[""] = self.part("").stat().st_size
        return sizes

    def read_claim(self) -> str:
        """Return the process that transfers the entry; raise FileNotFoundError if there is none."""
        return self.claim_file.read_text()

    def is_claimed(self) -> bool:
        """Whether a live process is transferring the entry, by its heartbeat."""
        try:
            owner, touched = self.read_claim(), self.claim_file.stat().st_mtime
        except FileNotFoundError:
            return False
        return abs(time.time() - touched) < SILENT and not ServiceProcess.is_dead(owner)

    def publish(self, files: LinkedFiles) -> None:
        """Check what has arrived, and make it the content; of a folder without links all files are what they are.

        Raise PlatformRefused if it differs from what was expected.
        """
        part = self.part_folder if files.is_folder else self.part("")
        if files.is_folder and not files.links:
            listed = self._list_tree()
        else:
            if files.is_folder:
                part.mkdir(exist_ok=True)
            else:
                part.touch()
            listed = list(_list_files(part))
            self._check(files, listed, part)
            runnable = {link.path for link in files.links if link.is_executable}
            for path, _, _ in listed:
                is_runnable = path in runnable if files.is_folder else bool(runnable)
                (part / path if path else part).chmod(RUNNABLE if is_runnable else READABLE)
        record = {"size": sum(size for _, size, _ in listed), "files": {path: [size, at] for path, size, at in listed}}
        fresh = self._record.with_suffix(".new")
        fresh.write_text(json.dumps(record))
        remove(self.content)  # changed content, or the remains of an interrupted try
        part.rename(self.content)
        fresh.rename(self._record)

    def _list_tree(self) -> list[tuple[str, int, int]]:
        """List a folder that came as a whole, after taking from its files the permission to write."""
        if not self.part_folder.is_dir():
            raise PlatformRefused("nothing of it came")
        listed = list(_list_files(self.part_folder))
        for file in (self.part_folder / path for path, _, _ in listed):
            if not file.is_symlink():
                file.chmod(RUNNABLE if file.stat().st_mode & 0o111 else READABLE)
        return listed

    def _check(self, files: LinkedFiles, listed: list[tuple[str, int, int]], part: Path) -> None:
        size = sum(count for _, count, _ in listed)
        if files.is_folder and len(listed) != len(files.links):
            raise PlatformRefused(f"it has {len(listed)} files, and {len(files.links)} were expected")
        if files.size is not None and size != files.size:
            raise PlatformRefused(f"it has {size} bytes, and {files.size} were expected")
        for link in files.links:
            _check_sum(part / link.path if files.is_folder else part, link.checksum.lower())


def _check_sum(file: Path, checksum: str) -> None:
    kind, _, wanted = checksum.partition(":")
    digits = compute_checksum(file, kind) if kind else wanted
    if digits != wanted:
        raise PlatformRefused(f"its checksum is {kind}:{digits}, and {kind}:{wanted} was expected")


def _list_files(root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield each file or link below a folder with its size and mtime; a single file has the name ''."""
    if root.is_file():
        status = root.stat()
        yield "", status.st_size, status.st_mtime_ns
        return
    for folder, folders, names in os.walk(root):
        for name in [*names, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]:
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # what writes it has just renamed it
                status = path.lstat()
                yield str(path.relative_to(root)), status.st_size, status.st_mtime_ns
