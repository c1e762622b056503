"""Sandboxes in transit: packed while they are sent and unpacked while they arrive, without another copy here."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import tarfile
import threading
from collections.abc import Generator
from io import RawIOBase
from pathlib import Path
from typing import Any

from sublet.annexes.split.frames import SLICE
from sublet.annexes.split.spool_files import is_scarce

HELD = 8  # slices buffered between the two threads
STARTERS_OWN = {
    *(".job.ad", ".job.ad.out", ".machine.ad", ".update.ad", ".status.ad"),
    *(".chirp.config", ".docker_sock", ".worker_stdout", ".condor_creds", ".sublet-incoming"),
}  # the starter's own files, in a sandbox that is also its scratch directory
INCOMING = ".sublet-incoming"
WORDS = ("failure", "unsent", "starter.log")  # texts that come with an attempt that failed


END = ".job.ad.out"  # how a job ended, which the starter reads


class Closed(Exception):
    """Nobody wants the rest."""


class _Pipe(RawIOBase):
    """A file between two threads, with room for a few slices."""

    def __init__(self) -> None:
        self._slices: queue.Queue[bytes] = queue.Queue(HELD)
        self._rest = b""
        self._gone = threading.Event()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        for at in range(0, len(piece), SLICE):
            self.put(piece[at : at + SLICE])
        return len(piece)

    def put(self, piece: bytes) -> None:
        """Write a slice, where an empty one is the end; raise Closed if the reader is gone."""
        while not self._gone.is_set():
            try:
                return self._slices.put(piece, timeout=0.2)
            except queue.Full:
                continue
        raise Closed

    def get(self) -> bytes:
        """Read the next slice, empty at the end; raise Closed if the writer is gone."""
        while not self._gone.is_set():
            try:
                return self._slices.get(timeout=0.2)
            except queue.Empty:
                continue
        raise Closed

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size:
            piece = self.get()
            if not piece:
                self._slices.put(b"")  # so that the next read sees the end too
                break
            self._rest += piece
        got, self._rest = self._rest[:size], self._rest[size:]
        return got

    def give_up(self) -> None:
        """Release the thread that waits at the other side."""
        self._gone.set()


class Outgoing:
    """A job's ad and its sandbox as an archive, packed while it is read."""

    def __init__(self, job_ad: str, sandbox: str, scratch: str) -> None:
        """Prepare the archive; nothing is read before the first frame."""
        self._job_ad, self._sandbox, self._scratch = job_ad, sandbox, scratch
        self._pipe = _Pipe()
        self.failure, self.is_scarce = "", False  # why it can't be read, and whether that may be temporary

    def frames(self, header: dict[str, Any]) -> Generator[tuple[dict[str, Any], bytes], None, None]:
        """Yield the archive in frames, of which the last is marked; closing the generator early stops the packing."""
        thread = threading.Thread(target=self._pack, daemon=True)
        thread.start()
        offset, held = 0, b""
        try:
            while True:
                piece = self._pipe.get()
                if held and (not piece or len(held) + len(piece) > SLICE):
                    yield {**header, "offset": offset, "last": not piece}, held
                    offset, held = offset + len(held), b""
                if not piece:
                    break
                held += piece
        except Closed:
            return  # it was closed early, or can't be read
        finally:
            self._pipe.give_up()
            thread.join()

    def _pack(self) -> None:
        try:
            own = STARTERS_OWN if os.path.samefile(self._sandbox, self._scratch) else set()
            with tarfile.open(fileobj=self._pipe, mode="w|", format=tarfile.PAX_FORMAT) as archive:
                archive.add(self._job_ad, "job.ad")
                if os.path.exists(os.path.join(self._scratch, ".machine.ad")):
                    archive.add(os.path.join(self._scratch, ".machine.ad"), "machine.ad")
                archive.add(
                    self._sandbox,
                    "sandbox",
                    filter=lambda member: None if member.isdev() or member.name[8:] in own else member,
                )
            self._pipe.put(b"")
        except Closed:
            pass
        except (OSError, tarfile.TarError, ValueError) as error:
            self.failure, self.is_scarce = words_of(error), is_scarce(error)
            self._pipe.give_up()


def disguise(ad: Path, before: Path) -> None:
    """Give a job's end the size and the time of the empty file that was there before the job (bridge.py).

    HTCondor takes it for unchanged then; otherwise it would transfer it with the job's own files.
    """
    with contextlib.suppress(OSError):
        status = before.stat()
        if ad.stat().st_size <= status.st_size:
            with ad.open("ab") as file:
                file.write(b"\n" * (status.st_size - ad.stat().st_size))
            os.utime(ad, ns=(status.st_atime_ns, status.st_mtime_ns))


def words_of(error: Exception) -> str:
    """Describe an error without local paths."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


class Incoming:
    """A job's result: unpacked beside its sandbox while it arrives, and moved into place when it is complete."""

    def __init__(self, scratch: str, name: str) -> None:
        """Start to unpack, discarding an earlier incomplete try."""
        self.place = Path(scratch) / INCOMING / name
        self._pipe = _Pipe()
        self.failure, self.is_scarce = "", False  # why it can't be used, and whether that may be temporary
        self.said = dict.fromkeys(WORDS, "")
        self._thread = threading.Thread(target=self._unpack, daemon=True)
        self._thread.start()

    def take(self, piece: bytes) -> None:
        """Take the next bytes; may wait until there is room."""
        if piece and not self.failure:
            try:
                self._pipe.put(piece)
            except Closed:
                pass

    def finish(self) -> None:
        """Finish after the last bytes."""
        try:
            self._pipe.put(b"")
        except Closed:
            pass
        self._thread.join()

    def drop(self) -> None:
        """Discard the result."""
        self._pipe.give_up()
        self._thread.join()
        shutil.rmtree(self.place, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.place.parent.rmdir()

    def settle(self, sandbox: str, scratch: str) -> None:
        """Move the files to where the starter expects them."""
        try:
            merge(self.place / "sandbox", Path(sandbox))
            ad = self.place / "out.ad"
            if ad.exists():
                disguise(ad, Path(scratch) / END)
                ad.replace(Path(scratch) / END)
        except OSError as error:
            self._note_failure(error)

    def read_words(self) -> None:
        """Read the small texts that came with the result."""
        for name in WORDS:
            try:
                self.said[name] = (self.place / name).read_text(errors="replace")[-4000:].strip()
            except OSError:
                continue

    def _unpack(self) -> None:
        try:
            shutil.rmtree(self.place, ignore_errors=True)
            self.place.mkdir(parents=True, mode=0o700)
            with tarfile.open(fileobj=self._pipe, mode="r|") as archive:
                unpack_safely(archive, self.place)
            while self._pipe.get():
                pass
        except Closed:
            self.failure = self.failure or "it was cut"
        except (OSError, tarfile.TarError, ValueError) as error:
            self._note_failure(error)
            self._pipe.give_up()

    def _note_failure(self, error: Exception) -> None:
        self.failure, self.is_scarce = words_of(error), is_scarce(error)


def unpack_safely(archive: tarfile.TarFile, place: Path) -> None:
    """Unpack an archive of a node; raise ValueError if a member leaves the directory or is a special file.

    Python has this as the filter "data", but Debian 12's version doesn't have it yet.
    """
    archive.extraction_filter = lambda member, path: member
    for member in archive:
        check_member(member, place)
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        member.mode = (member.mode | 0o700) & 0o755 if member.isdir() else member.mode & 0o777
        archive.extract(member, place)


def check_member(member: tarfile.TarInfo, place: Path) -> None:
    """Raise ValueError if an archive's member leaves the directory, or isn't a file, directory or link."""
    paths = [member.name]
    if member.issym():
        paths.append(os.path.join(os.path.dirname(member.name), member.linkname))
    elif member.islnk():
        paths.append(member.linkname)
    elif not (member.isreg() or member.isdir()):
        raise ValueError(f"{member.name} is neither a file nor a directory")
    root = os.path.realpath(place)
    for path in paths:
        target = os.path.realpath(os.path.join(root, path))
        if path.startswith("/") or os.path.commonpath([root, target]) != root:
            raise ValueError(f"{member.name} leads out of the directory")


def merge(source: Path, target: Path) -> None:
    """Move all files of one directory into another, replacing files of the same name."""
    if not source.is_dir():
        return
    if not target.exists():
        target.mkdir()
        target.chmod(source.stat().st_mode & 0o777)
    for entry in source.iterdir():
        there = target / entry.name
        if entry.is_dir() and not entry.is_symlink():
            if there.is_symlink() or (there.exists() and not there.is_dir()):
                there.unlink()
            merge(entry, there)
        else:
            if there.is_dir() and not there.is_symlink():
                shutil.rmtree(there)
            entry.replace(there)
