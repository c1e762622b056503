"""A session's local directory, whose files are sent to where it runs as one archive, and come back as one."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO

from sublet.platforms.sessiondir import SessionDir

SENT = ("work", "data", "storage")  # the parts of a session's directory that are sent


class PackedSession(SessionDir):
    """A session's local directory, its archives, and notes on its state elsewhere."""

    def pack(self, limit: int | None = None) -> bytes | None:
        """Pack the session's files into an archive; return None if it is larger than `limit`."""
        if limit is not None and self._measure() > 20 * limit:
            return None
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
            self._write_archive(packed)
        content = buffer.getvalue()
        return content if limit is None or len(content) <= limit else None

    def pack_into(self, target: Path, without: Collection[str] = ()) -> int:
        """Pack the session's files into the file `target`, except those in `without`, and return its size."""
        with target.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, compresslevel=1) as packed:
            self._write_archive(packed, without)
        return target.stat().st_size

    def _write_archive(self, packed: gzip.GzipFile, without: Collection[str] = ()) -> None:
        def choose(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
            return None if entry.name in without else _belong_to_nobody(entry)

        with tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive:
            for part in SENT:
                if (self.root / part).exists():
                    archive.add(self.root / part, part, filter=choose)

    def _measure(self) -> int:
        return sum(
            os.lstat(os.path.join(folder, name)).st_size
            for part in SENT
            for folder, _, names in os.walk(self.root / part)
            for name in names
        )

    def note(self, name: str, text: str) -> None:
        """Save a note that must survive a restart of the service."""
        self.write(name, text.encode())

    def read_note(self, name: str) -> str:
        """Read a note; empty if there is none."""
        return self._text(name)

    @property
    def cancelled_by(self) -> str:
        """Who cancelled the session; empty if nobody did."""
        return self._text("cancel")

    def cancel(self, by: str) -> None:
        """Record who cancelled the session; the first record stands."""
        with suppress(FileExistsError, FileNotFoundError):
            file = os.open(self.root / "cancel", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as opened:
                opened.write(by)

    def remove_empty_parents(self) -> None:
        """Remove empty folders that exist only as parents of mount points, so that they aren't taken for results."""
        for mount in (self.read("job.json") or {}).get("mounts", ()):
            for parent in self.inside(mount["target"]).parents:
                if parent == self.work or not parent.is_dir() or any(parent.iterdir()):
                    break
                parent.rmdir()

    def put_member(self, member: tarfile.TarInfo, content: IO[bytes] | None, brought: dict[str, list[int]]) -> None:
        """Extract one file or folder of the results.

        Links are left out, and staged files that haven't changed are kept.
        """
        relative = member.name.removeprefix("session/")
        if relative in ("stdout", "stderr") and content:
            _write(self.root / relative, content)
            return
        path = relative.removeprefix("work").strip("/")
        if not path:
            return
        target = self.inside(path)
        size, time = brought.get(path, (-1, 0))
        if size == member.size and time // 10**9 == int(member.mtime) and content:
            return
        if member.isdir():
            self._make_way(target, is_folder=True)
        elif member.islnk():
            source = self.inside(member.linkname.removeprefix("session/").removeprefix("work/"))
            self._make_way(target)
            if source.is_file() and not source.is_symlink():
                shutil.copyfile(source, target)
        elif content:
            self._make_way(target)
            _write(target, content)
            os.utime(target, (member.mtime, member.mtime))

    def _make_way(self, target: Path, *, is_folder: bool = False) -> None:
        """Create a target's folder and remove whatever is in its place.

        Links on the way are removed, so none leads outside.
        """
        folder = target if is_folder else target.parent
        below = folder.relative_to(self.work).parts
        for count in range(1, len(below) + 1):
            part = self.work.joinpath(*below[:count])
            if part.is_symlink() or (part.exists() and not part.is_dir()):
                part.unlink()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_folder and target.is_symlink():
            target.unlink()
        if not is_folder and target.is_dir():
            shutil.rmtree(target)


def _write(target: Path, content: IO[bytes]) -> None:
    part = target.with_name(f"{target.name[:200]}.part~")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        shutil.copyfileobj(content, file)
    part.rename(target)


def _belong_to_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Remove the local user and group from an archive's entry; drop everything but files, folders and links."""
    if not (entry.isreg() or entry.isdir() or entry.issym()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
