"""One session's directory on this machine: what is sent to its pod, and what comes back from it.

work/, data/, storage/    what was brought; after the end, what it left
submitted                 the uid of its Job, once the cluster has it;  pod: that of the pod in which it began
cancel                    who wants it stopped
end.json                  how it ended, once what it left is here
"""

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

from sublet.booking.model.job import Job
from sublet.platforms.kubernetes.kept import KeptInput, list_large
from sublet.platforms.kubernetes.states import Left, read_usage
from sublet.platforms.local.shim.watch import words_of
from sublet.platforms.sessiondir import SessionDir

SENT = ("work", "data", "storage")  # the parts of a session's directory that go to its pod
SMALL = 700_000  # bytes that a Secret has room for, beside our own
OWN = "own/"  # of an archive: what the pod wrote of its end


class PodSession(SessionDir):
    """A session's directory, and the notes on what the cluster has of it."""

    def lay_out(self, job: Job, output_limit: int) -> None:
        """Write what the program needs, and what has to be known of it later on."""
        self.make()
        self.write_program(dict(job.program.files))
        volumes = self.volumes(job.mounts)
        self.write_job(
            {
                "mounts": volumes,
                "connects": job.program.connects,
                "output_limit": output_limit,
                "prints_to_log": job.program.keeps_entrypoint,
                "writable": [mount.source for mount in job.mounts if not mount.read_only],
            }
        )

    def pack(self, limit: int | None = None) -> bytes | None:
        """Its files as one archive; None if they are more than fits."""
        if limit is not None and self._measure() > 20 * limit:
            return None
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
            self._write_archive(packed)
        content = buffer.getvalue()
        return content if limit is None or len(content) <= limit else None

    def list_large(self) -> list[KeptInput]:
        """The files that can be kept for other sessions, too."""
        return list_large(self.root, (self.read("job.json") or {}).get("writable", ()))

    def pack_into(self, target: Path, without: Collection[str] = ()) -> int:
        """The same in a file, without some of them; its size."""
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

    @property
    def prints_to_log(self) -> bool:
        """Whether an image's own entrypoint runs, whose output is its container's log alone."""
        return bool((self.read("job.json") or {}).get("prints_to_log"))

    def note(self, name: str, text: str) -> None:
        """Write something down that must outlive the service."""
        self.write(name, text.encode())

    def read_note(self, name: str) -> str:
        """What was written down; nothing, if it wasn't."""
        return self._text(name)

    @property
    def cancelled_by(self) -> str:
        """Who wanted it stopped."""
        return self._text("cancel")

    def cancel(self, by: str) -> None:
        """Write down who wants it stopped; the first stands."""
        with suppress(FileExistsError, FileNotFoundError):
            file = os.open(self.root / "cancel", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as opened:
                opened.write(by)

    def unpack(self, archive: Path) -> Left:
        """Put what came back in its place; what the pod wrote of the end."""
        brought = self.read("brought.json") or {}
        notes: dict[str, str] = {}
        with tarfile.open(archive, "r|") as opened:
            for member in opened:
                content = opened.extractfile(member) if member.isreg() else None
                if member.name.startswith(OWN) or member.name in ("session/unstarted", "session/detail"):
                    notes[member.name.rpartition("/")[2]] = (
                        content.read(10_000).decode("utf-8", "replace") if content else ""
                    )
                else:
                    self._put(member, content, brought)
        self._remove_empty_parents()
        return read_left(notes)

    def _remove_empty_parents(self) -> None:
        """Folders that were there only for what is mounted in them are nothing that it left."""
        for mount in (self.read("job.json") or {}).get("mounts", ()):
            for parent in self.inside(mount["target"]).parents:
                if parent == self.work or not parent.is_dir() or any(parent.iterdir()):
                    break
                parent.rmdir()

    def _put(self, member: tarfile.TarInfo, content: IO[bytes] | None, brought: dict[str, list[int]]) -> None:
        """One file or folder; links are left out, and what was brought and is as it was stays as it is here."""
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
            _make_way(target, is_folder=True)
        elif member.islnk():
            source = self.inside(member.linkname.removeprefix("session/work/"))
            _make_way(target)
            if source.is_file() and not source.is_symlink():
                shutil.copyfile(source, target)
        elif content:
            _make_way(target)
            _write(target, content)
            os.utime(target, (member.mtime, member.mtime))


def _make_way(target: Path, *, is_folder: bool = False) -> None:
    """Have a folder for it, and nothing else in its place; no link here leads elsewhere."""
    folder = target if is_folder else target.parent
    for part in (*reversed(folder.parents), folder):
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
    """What goes to a pod tells nobody who we are here."""
    if not (entry.isreg() or entry.isdir() or entry.issym()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def read_left(notes: dict[str, str]) -> Left:
    """What a pod wrote of the end of its session."""
    kind, _, why = notes.get("unstarted", "").partition("\n")
    code = notes.get("code", "").strip()
    return Left(
        code=int(code) if code.isdigit() else None,
        usage=read_usage(notes["times"], notes.get("peak", "")) if "times" in notes else None,
        is_over_time="time" in notes,
        killed=int(killed) if (killed := notes.get("killed", "").strip()).isdigit() else 0,
        unstarted=kind.strip(),
        detail=words_of(why) if kind else words_of(notes.get("detail", "")),
    )
