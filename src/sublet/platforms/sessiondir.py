"""One session's directory on this machine: written before it runs, and read during and after."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import stat
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sublet.booking.model.job import JobState, Mount, State
from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.places import BoundPlace
from sublet.booking.model.session import STOPPED, Connector, End, EndKind, Usage, describe_pause
from sublet.kernel.errors import NotFound, PlatformRefused
from sublet.kernel.path_texts import restore_path, show_path
from sublet.kernel.shortage import is_shortage
from sublet.platforms.local.shim import clocks, scratch
from sublet.platforms.local.shim.processes import boot_id, is_alive
from sublet.platforms.local.shim.watch import END_SIZE
from sublet.platforms.port import ResultFile, Results

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
CHUNK = 1 << 18


@dataclass(frozen=True)
class Shim:
    """The supervisor process of a job; boot and start time distinguish it from a later process with the same pid."""

    pid: int
    start: int
    boot: str
    began: float
    marks_begin: bool = False  # whether this shim writes ran/begun; older versions did not
    steady: float | None = None  # its start on the monotonic clock; older versions don't record it

    @property
    def alive(self) -> bool:
        """Whether the shim process is still running."""
        return is_alive(self.pid, self.start, self.boot)

    @property
    def began_now(self) -> float:
        """When it began, corrected for changes of the wall clock since, unless the machine has been rebooted."""
        if self.steady is None or self.boot != boot_id():
            return min(self.began, clocks.wall())
        return self.steady + clocks.offset()


OWN = ".sublet"  # in the working directory: files that a kind needs to run the executable


def moment(seconds: float) -> datetime:
    """Convert epoch seconds to a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def age(path: Path) -> float:
    """Return the seconds since a path's inode last changed; 0 if it doesn't exist.

    A time in the future counts by its distance, because the clock may have been set back.
    """
    try:
        return abs(time.time() - path.stat().st_ctime)
    except OSError:
        return 0.0


class SessionDir:
    """One session's directory and the files in it."""

    def __init__(self, platform: str, home: Path, key: str) -> None:
        """Compute the paths without creating anything; raise PlatformRefused if the key isn't a valid name."""
        if not KEY.fullmatch(key):
            raise PlatformRefused(platform=platform, why=f"{key!r} can't be the name of a session's directory")
        self.platform = platform
        self.key = key
        self.root = home / "sessions" / key
        self.work = self.root / "work"
        self.running = home / "running" / key
        self.news = home / "news"

    def make(self) -> None:
        """Create the directory and the subdirectories that every session has."""
        for path in (self.root, self.work, self.root / "data", self.root / "tmp"):
            path.mkdir(mode=0o700, exist_ok=True)

    def make_scratch(self) -> str:
        """Return the short path to the session's directory for temporary files, and create the link if needed."""
        directory = str(self.root / "tmp")
        link = self._text("tmp.link")
        if scratch.leads_to(link) != directory:
            link = scratch.shorten(directory)
            self.write("tmp.link", link.encode())
        return link

    def remove_scratch(self) -> None:
        """Remove the session's temporary files and the short path to them."""
        directory = str(self.root / "tmp")
        scratch.remove_link(self._text("tmp.link"), directory)
        scratch.remove_files(directory)

    def write(self, name: str, data: bytes) -> None:
        """Write one of the session's own files atomically, readable by nobody else."""
        part = self.root / f"{name}.{secrets.token_hex(4)}.part"  # unique: another thread may write it too
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
            part.rename(self.root / name)
        finally:
            part.unlink(missing_ok=True)

    def write_program(self, files: dict[str, bytes]) -> None:
        """Write the program's files below the working directory; scripts become executable."""
        for name, data in files.items():
            path = self.inside(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if data.startswith(b"#!"):
                path.chmod(0o700)

    def inside(self, name: str) -> Path:
        """Return a path below the working directory, or raise PlatformRefused if it leads outside."""
        if name.startswith("/") or ".." in Path(name).parts or not Path(name).parts:
            raise PlatformRefused(platform=self.platform, why=f"{name!r} is not below the working directory")
        return self.work / name

    def volumes(self, mounts: tuple[Mount, ...]) -> list[dict[str, Any]]:
        """Return the mounts that the shim makes: those with relative targets.

        Containers mount absolute targets themselves.
        """
        made = []
        for mount in mounts:
            source = self.root / mount.source
            if ".." in Path(mount.source).parts or Path(mount.source).is_absolute():
                raise PlatformRefused(
                    platform=self.platform, why=f"{mount.source!r} is not below the session's directory"
                )
            if not source.exists():
                source.mkdir(parents=True)
            if not mount.target.startswith("/"):
                self.inside(mount.target)
                made.append({"source": str(source), "target": mount.target, "read_only": mount.read_only})
        return made

    def places(self, places: tuple[BoundPlace, ...]) -> list[dict[str, Any]]:
        """Return the places that the shim mounts below the working directory."""
        below = [place for place in places if not place.target.startswith("/")]
        for place in below:
            self.inside(place.target)
        return [
            {"source": place.path, "target": place.target, "read_only": place.read_only, "shared": True}
            for place in below
        ]

    def write_job(self, job: dict[str, Any]) -> None:
        """Write the job for the shim, and reserve disk space for the end's record, in case the disk is full then."""
        for stream in ("stdout", "stderr"):
            (self.root / stream).touch(0o600)
        self.write("end.json.room", b" " * END_SIZE)
        self.write("job.json", json.dumps(job).encode())

    def order(self, name: str, text: str) -> None:
        """Leave the shim an order: `cancel`, `until` or `pause`."""
        self.write(name, text.encode())

    def read(self, name: str) -> Any:
        """Read one of the session's JSON files; None if it is missing or truncated by a crash."""
        try:
            return json.loads((self.root / name).read_bytes())
        except (OSError, ValueError) as error:
            _raise_shortage(error)
            return None

    @property
    def ran(self) -> bool:
        """Whether a shim has claimed the session: from then on it never runs again."""
        return (self.root / "ran").is_dir()

    @property
    def never_ran(self) -> bool:
        """Whether the program certainly never ran, provided its shim is gone; a power failure leaves this uncertain."""
        shim = self.shim
        return shim is None or (shim.marks_begin and not (self.root / "ran" / "begun").exists())

    def age(self, name: str) -> float:
        """Return the seconds since one of the session's files was made."""
        return age(self.root / name)

    @property
    def shim(self) -> Shim | None:
        """The session's shim, whether alive or gone; None if there was none."""
        values = self.read("ran/shim.json")
        return Shim(**values) if values else None

    @property
    def ended(self) -> bool:
        """Whether the session's end is on record."""
        return self.read("end.json") is not None

    def state(self) -> JobState:
        """Return the state by the session's files; it is UNKNOWN if the shim is gone without a record."""
        if end := self.read("end.json"):
            return read_end(end)
        shim = self.shim
        if shim is None or not shim.alive:
            return JobState(State.UNKNOWN, started=moment(shim.began_now) if shim else None)
        warning = self._text("warning")
        is_paused = bool(self._text("paused"))
        words = [describe_pause(STOPPED)] if is_paused else []
        words += [f"ends soon, at {warning}"] if warning else []
        return JobState(
            State.RUNNING,
            started=moment(shim.began_now),
            connector=self._connector(),
            condition="; ".join(words),
            marks=PAUSED if is_paused else NONE,
        )

    def has_obeyed(self, order: str) -> bool:
        """Whether the shim has carried out this order to pause or resume."""
        return self._text("paused") == order

    def read_text(self, name: str) -> str:
        """Read one of the session's files as text; empty if it doesn't exist."""
        return self._text(name)

    def _text(self, name: str) -> str:
        try:
            return (self.root / name).read_text()
        except OSError as error:
            _raise_shortage(error)
            return ""

    def _connector(self) -> Connector | None:
        where = self._text("connector")
        if not where:
            return None
        return Connector(self.read("job.json")["connects"], "AVAILABLE", "HTTP", where)

    def settle(self, end: End, started: float, ended: float) -> None:
        """Record an end in the shim's place; the first record stands."""
        record = asdict(end) | {"started": started, "ended": ended, "usage": asdict(end.usage or Usage())}
        self.write("end.json.settled", json.dumps(record).encode())
        with suppress(FileExistsError):
            os.link(self.root / "end.json.settled", self.root / "end.json")
        (self.root / "end.json.settled").unlink()
        with suppress(FileNotFoundError):
            self.running.rename(self.news / f"{self.key}.ended")

    def output_size(self, stream: str) -> int:
        """Return the size of the output, up to the session's output limit."""
        job = self.read("job.json")
        try:
            return min((self.root / stream).stat().st_size, job["output_limit"] if job else 0)
        except FileNotFoundError:
            return 0

    def output(self, stream: str, offset: int, limit: int) -> bytes:
        """Return part of the output; anything beyond the session's output limit is never shown."""
        job = self.read("job.json")
        room = (job["output_limit"] if job else 0) - offset
        try:
            with (self.root / stream).open("rb") as file:
                file.seek(offset)
                return file.read(max(0, min(limit, room)))
        except FileNotFoundError:
            return b""

    def results(self) -> Results:
        """List the results in the working directory.

        Links are skipped, and so are staged files that haven't changed.
        """
        mounted = {self.work / mount["target"] for mount in (self.read("job.json") or {}).get("mounts", ())}
        brought = self.read("brought.json") or {}  # size and mtime of each staged file; PATH/ is a folder
        files: list[ResultFile] = []
        empty: list[str] = []
        for folder, folders, names in os.walk(self.work):
            at = Path(folder)
            if not folders and not names and at not in mounted | {self.work}:
                empty += {str(at.relative_to(self.work))} - {path.rstrip("/") for path in brought if path[-1:] == "/"}
            folders[:] = sorted(name for name in folders if at / name != self.work / OWN)
            left = (self._find_left(at / name, brought) for name in sorted(names) if at / name not in mounted)
            files += [file for file in left if file]
        return Results(tuple(files), tuple(map(show_path, empty)))

    def _find_left(self, path: Path, brought: dict[str, Any]) -> ResultFile | None:
        """Return a regular file that wasn't staged or has changed since; None for anything else."""
        try:
            status = path.lstat()
        except FileNotFoundError:  # a running session may have just removed it
            return None
        relative = str(path.relative_to(self.work))
        if not stat.S_ISREG(status.st_mode) or brought.get(relative) == [status.st_size, status.st_mtime_ns]:
            return None
        return ResultFile(show_path(relative), status.st_size, moment(status.st_mtime))

    async def pieces(self, path: str, offset: int) -> AsyncIterator[bytes]:
        """Read a result file in chunks, from an offset."""
        with os.fdopen(self.open_result(path), "rb") as opened:
            opened.seek(offset)
            while piece := await asyncio.to_thread(opened.read, CHUNK):
                yield piece

    def open_result(self, path: str) -> int:
        """Open a result file without following links, and return its file descriptor.

        Raise NotFound if there is none.
        """
        parts = self.inside(restore_path(path)).relative_to(self.work).parts
        at = os.open(self.work, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                deeper = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
                os.close(at)
                at = deeper
            file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        except OSError as error:
            _raise_shortage(error)
            raise NotFound(noun="result", name=path, hint="`sublet result` lists the files.") from error
        finally:
            os.close(at)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise NotFound(noun="result", name=path, hint="`sublet result` lists the files.")
        return file

    def remove(self, trash: Path) -> None:
        """Remove the directory and its marks; rename it first, so that a half-removed directory is never seen."""
        scratch.remove_link(self._text("tmp.link"), str(self.root / "tmp"))
        aside = trash / f"{self.key}.{os.getpid()}.{os.urandom(4).hex()}"
        with suppress(FileNotFoundError):
            self.root.rename(aside)
        remove_tree(aside)
        self.running.unlink(missing_ok=True)
        for what in ("open", "ended"):
            (self.news / f"{self.key}.{what}").unlink(missing_ok=True)


def _raise_shortage(error: Exception) -> None:
    """Re-raise errors that mean that no files can be opened at the moment, which says nothing about this file."""
    if is_shortage(error):
        raise error


def remove_tree(path: Path) -> None:
    """Remove a directory with its contents, even if the job made parts of it unwritable."""
    scratch.remove_files(str(path))


def read_end(record: dict[str, Any]) -> JobState:
    """Convert the record of an end, written by the shim or the platform, to a job's state."""
    end = End(
        kind=EndKind(record["kind"]),
        code=record.get("code"),
        signal=record.get("signal"),
        by=record.get("by", ""),
        detail=record.get("detail", ""),
        usage=Usage(**record["usage"]),
    )
    return JobState(State.ENDED, end=end, started=moment(record["started"]), ended=moment(record["ended"]))
