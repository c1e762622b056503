"""One session's directory at the access point: what is written there before its jobs run, and their results.

description, job.sh, life.sh, program   what HTCondor is given
tried.N, id                    tries to submit it, and the output of condor_submit
log                            what happened to its jobs, written by HTCondor
shared/                        files that a system may keep by their content
image-address                  the registry's image that the systems of its nodes have cached
work/, stdout, stderr          a job's results, with record.json: how it ended
parts/N/                       the same for each of several parts, until all have ended
cancel, until                  who cancelled it; the moved end of its time
end.json                       how the session ended, once that is settled
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sublet.booking.model.job import Job
from sublet.booking.model.together import Joined
from sublet.platforms.batch.kept import digest_of, name_of
from sublet.platforms.htcondor.job import SHARED, placeholder
from sublet.platforms.htcondor.log import LogEvent, read_log
from sublet.platforms.htcondor.states import JobRecord, read_record
from sublet.platforms.sessiondir import OWN, SessionDir, moment, remove_tree

SPREAD = 10_000  # how many directories HTCondor spreads its spool over
ADDRESS = "image-address"
PATIENCE = 600  # seconds to join results


class Submitted(SessionDir):
    """A session's directory, with the jobs that HTCondor was given for it."""

    def lay_out(self, job: Job, files: dict[str, bytes]) -> tuple[tuple[str, ...], int]:
        """Write all files that the jobs need.

        Return the parts of the directory to send to the node, and their size in bytes.
        """
        self.make()
        self.write_program(dict(job.program.files))
        volumes = self.volumes(job.mounts)
        for name, content in files.items():
            self.write(name, content)
        (self.root / "job.sh").chmod(0o700)
        for number in range(job.amounts.parts if job.amounts.parts > 1 else 0):
            (self.root / "parts" / str(number)).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.write_spec(
            {"parts": job.amounts.parts, "mounts": volumes, "join": job.program.join, "output_limit": sys.maxsize}
        )
        there = [name for name in ("data", "storage") if _holds_something(self.root / name)]
        shared = [f"{SHARED}/{file.name}" for file in sorted((self.root / SHARED).glob("*"))]
        brought = ("program", "life.sh", "work", *there, *shared)
        return brought, sum(size_of(self.root / name) for name in brought)

    def share(self, file: Path) -> str:
        """Set a file aside that a system may keep by its content, and return its name there."""
        folder = self.root / SHARED
        folder.mkdir(mode=0o700, exist_ok=True)
        (self.root / ADDRESS).unlink(missing_ok=True)
        name = name_of(digest_of(file))
        with suppress(FileExistsError):
            os.link(file, folder / name)
        return name

    def expect(self, location: str) -> None:
        """Record the registry's image that the systems of its nodes have cached."""
        remove_tree(self.root / SHARED)
        self.write(ADDRESS, location.encode())

    @property
    def image(self) -> str:
        """The address of that image; empty if the session has none, or sends it."""
        return self._text(ADDRESS)

    def write_spec(self, values: dict[str, Any]) -> None:
        """Write what must be known of the session later."""
        self.write_job(values)
        self.running.touch(0o600)

    @property
    def parts(self) -> int:
        """In how many parts the session runs."""
        return int((self.read("job.json") or {}).get("parts", 1))

    def part(self, number: int) -> Path:
        """Return the directory where a part leaves its files."""
        return self.root / "parts" / str(number) if self.parts > 1 else self.root

    @property
    def tries(self) -> int:
        """How often submitting the session was tried."""
        return sum(1 for _ in self.root.glob("tried.*"))

    @property
    def submitted(self) -> bool:
        """Whether HTCondor has the session's jobs, by its directory."""
        return bool(self._text("id")) or bool(self.log_size())

    def log_size(self) -> int:
        """Return the size of HTCondor's log of the session."""
        try:
            return (self.root / "log").stat().st_size
        except FileNotFoundError:
            return 0

    def read_log(self) -> dict[int, LogEvent]:
        """Read the state of each job from the log."""
        try:
            with (self.root / "log").open() as file:
                text, written = file.read(), moment(os.fstat(file.fileno()).st_mtime)
        except FileNotFoundError:
            text, written = "", None
        events = read_log(text, written)
        return {number: events.get(number, LogEvent()) for number in range(self.parts)}

    def record(self, number: int) -> JobRecord | None:
        """Return a part's own record of its end."""
        try:
            return read_record((self.part(number) / "record.json").read_text())
        except OSError:
            return None

    @property
    def cancelled(self) -> str | None:
        """Who cancelled the session; None if nobody did."""
        return self._text("cancel") if (self.root / "cancel").exists() else None

    def cancel(self, by: str) -> None:
        """Record who cancelled the session; the first record stands."""
        with suppress(FileExistsError):
            file = os.open(self.root / "cancel", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as opened:
                opened.write(by)

    def collect(self, spool: str) -> None:
        """Copy what stopped jobs had written from HTCondor's spool."""
        for number, job in self.read_log().items():
            cluster, _, process = job.id.partition(".")
            if not (spool and cluster and process) or job.status == "exited":
                continue
            name = f"cluster{cluster}.proc{process}.subproc0"
            left = Path(spool, str(int(cluster) % SPREAD), str(int(process) % SPREAD), name)
            with suppress(OSError, shutil.Error):  # lost files must not prevent the end from being recorded
                if left.is_dir():
                    shutil.copytree(left, self.part(number), symlinks=True, dirs_exist_ok=True)

    def join(self) -> Joined:
        """Join the files and output of several parts, and run the kind's own program for that."""
        if self.parts == 1:
            return Joined()
        for number in range(self.parts):
            merge(self.part(number) / "work", self.work)
        for stream in ("stdout", "stderr"):
            with (self.root / stream).open("wb") as whole:
                for number in range(self.parts):
                    with suppress(FileNotFoundError), (self.part(number) / stream).open("rb") as part:
                        shutil.copyfileobj(part, whole)
        words = (self.read("job.json") or {}).get("join")
        return self._join(words) if words else Joined()

    def _join(self, words: list[str]) -> Joined:
        """Run the kind's own program to join results, with this machine's Python."""
        here, there = str(self.root).encode(), placeholder(self.key).encode()
        for path in (self.work / OWN).iterdir():
            if path.is_file() and there in (content := path.read_bytes()):
                path.write_bytes(content.replace(there, here))
        program = sys.executable if Path(words[0]).name.startswith("python") else words[0]
        try:
            done = subprocess.run(
                [program, *words[1:]],
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=PATIENCE,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Joined(None, f"what the parts left could not be put together: {error}")
        for stream, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            with (self.root / stream).open("ab") as file:
                file.write(text)
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        return Joined(done.returncode, lines[-1] if lines else "")

    def output(self, stream: str, offset: int, limit: int) -> bytes:
        """Return part of the output; while several parts run, it covers the first running part and those before it."""
        if self.parts == 1 or self.ended:
            return super().output(stream, offset, limit)
        events, content = self.read_log(), b""
        for number in range(self.parts):
            with suppress(FileNotFoundError), (self.part(number) / stream).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(min(offset, size))
                content += file.read(limit - len(content))
                offset = max(0, offset - size)
            if not events[number].over or len(content) >= limit:
                break
        return content


def merge(source: Path, target: Path) -> None:
    """Move the files below one directory to another, without those that a kind needed to run."""
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if Path(folder, name) != source / OWN]
        there = target / Path(folder).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            with suppress(OSError):  # a file where another part has a directory
                Path(folder, name).replace(there / name)


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files below a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def _holds_something(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())
