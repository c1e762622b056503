"""One entry of the cache on this machine: what lies in its folder, and what that says.

content       a file, or a folder of files, read-only, once it is whole
record.json   what people call it, how many bytes it has, and size and time of each file as it was published
users/KEY     an empty file for each session that needs it
used          when it was last needed
weight        how many bytes it takes elsewhere: an image in the store of a container tool
claim         the process that brings it, touched while that goes on
part, part.d  what has come so far: of a file, of a folder
"""

from __future__ import annotations

import json
import os
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

SILENT = 90.0  # seconds without a sign of life, after which another may go on
READABLE, RUNNABLE = 0o444, 0o555


class LocalEntry:
    """A folder of the cache."""

    def __init__(self, folder: Path) -> None:
        """Know where it is; nothing is made yet."""
        self.folder = folder
        self.content = folder / "content"
        self.claim_file = folder / "claim"
        self._record = folder / "record.json"

    def need(self, user: str, label: str) -> None:
        """Note that a session needs it, now."""
        (self.folder / "users").mkdir(mode=0o700, parents=True, exist_ok=True)
        if user:
            (self.folder / "users" / user).touch(0o600)
        (self.folder / "used").touch(0o600)
        if label and not (self.folder / "label").exists():
            (self.folder / "label").write_text(label)

    @property
    def users(self) -> list[str]:
        """The sessions that have needed it."""
        try:
            return sorted(os.listdir(self.folder / "users"))
        except FileNotFoundError:
            return []

    def forget(self, user: str) -> None:
        """A session needs it no more."""
        (self.folder / "users" / user).unlink(missing_ok=True)

    @property
    def used(self) -> datetime:
        """When it was last needed."""
        try:
            return datetime.fromtimestamp((self.folder / "used").stat().st_mtime, UTC)
        except FileNotFoundError:
            return datetime.fromtimestamp(self.folder.stat().st_mtime, UTC)

    @property
    def label(self) -> str:
        """What people call it."""
        try:
            return (self.folder / "label").read_text()
        except FileNotFoundError:
            return ""

    def read_record(self) -> dict[str, Any] | None:
        """What was published; None: nothing was."""
        try:
            record: dict[str, Any] = json.loads(self._record.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return record

    @property
    def size(self) -> int:
        """Bytes that it takes, also if it has not come whole."""
        record = self.read_record()
        return int(record["size"]) + self._weight if record else sum(self.measure().values())

    @property
    def _weight(self) -> int:
        try:
            return int((self.folder / "weight").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def set_weight(self, bytes: int) -> None:
        """Note that it takes so many bytes elsewhere."""
        (self.folder / "weight").write_text(str(bytes))

    def withdraw(self) -> None:
        """What was published is none any more."""
        self._record.unlink(missing_ok=True)

    def is_whole(self) -> bool:
        """Whether its content is there, as it was published; what someone has changed is no content any more."""
        record = self.read_record()
        if record is None or not self.content.exists():
            return False
        return bool({path: [size, at] for path, size, at in _list_files(self.content)} == record["files"])

    def part(self, path: str) -> Path:
        """Where a file of it lies until it is whole; an entry that is one file has the path ''."""
        if not path:
            return self.folder / "part"
        if path.startswith("/") or ".." in Path(path).parts:
            raise PlatformRefused("It has a file whose name can't be used here.")
        return self.folder / "part.d" / path

    def measure(self) -> dict[str, int]:
        """The sizes of the files that have come so far."""
        sizes = {path: size for path, size, _ in _list_files(self.folder / "part.d") if path}
        with suppress(FileNotFoundError):
            sizes[""] = self.part("").stat().st_size
        return sizes

    def is_claimed(self) -> bool:
        """Whether someone brings it, who gives signs of life."""
        try:
            owner, touched = self.claim_file.read_text(), self.claim_file.stat().st_mtime
        except FileNotFoundError:
            return False
        return abs(time.time() - touched) < SILENT and not ServiceProcess.is_dead(owner)

    def publish(self, files: LinkedFiles) -> None:
        """Check what has come, and let it be the content; PlatformRefused says what differs."""
        part = self.folder / "part.d" if files.is_folder else self.part("")
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
        remove(self.content)  # of what someone has changed, or of a try that was cut off here
        part.rename(self.content)
        fresh.rename(self._record)

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
    """Each file below a folder, with its size and time; a file is itself, called ''."""
    if root.is_file():
        status = root.stat()
        yield "", status.st_size, status.st_mtime_ns
        return
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            yield str(path.relative_to(root)), status.st_size, status.st_mtime_ns
