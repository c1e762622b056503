"""One session's directory at the access point: what is written there before its jobs run, and what they leave.

description, job.sh, life.sh, program   what HTCondor is given
tried.N, id                    tries to submit it, and what condor_submit said
log                            what happened to its jobs, written by HTCondor
shared/                        what a system may keep for many, by its content
image-address                  the image of a registry that the systems of its nodes have in their caches
work/, stdout, stderr          what a job leaves, with record.json: how it ended
parts/N/                       the same for each of several parts, until all have ended
cancel, until                  who wants it stopped; the moved end of its time
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
PATIENCE = 600  # seconds that results may take to be put together


class Submitted(SessionDir):
    """A session's directory, with the jobs that HTCondor was given for it."""

    def lay_out(self, job: Job, files: dict[str, bytes]) -> tuple[tuple[str, ...], int]:
        """Write all that the jobs need; the parts of the directory that travel to the node, and their size in bytes."""
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
        """Put a file aside that a system may keep for many, by its content; what it is called there."""
        folder = self.root / SHARED
        folder.mkdir(mode=0o700, exist_ok=True)
        (self.root / ADDRESS).unlink(missing_ok=True)
        name = name_of(digest_of(file))
        with suppress(FileExistsError):
            os.link(file, folder / name)
        return name

    def expect(self, location: str) -> None:
        """Note the image of a registry that the systems of its nodes have."""
        remove_tree(self.root / SHARED)
        self.write(ADDRESS, location.encode())

    @property
    def image(self) -> str:
        """The address of that image; empty: it has none, or brings it."""
        return self._text(ADDRESS)

    def write_spec(self, values: dict[str, Any]) -> None:
        """Write what is known of it later on."""
        self.write_job(values)
        self.running.touch(0o600)

    @property
    def parts(self) -> int:
        """In how many parts it runs."""
        return int((self.read("job.json") or {}).get("parts", 1))

    def part(self, number: int) -> Path:
        """Where a part leaves what it has."""
        return self.root / "parts" / str(number) if self.parts > 1 else self.root

    @property
    def tries(self) -> int:
        """How often it was tried to submit it."""
        return sum(1 for _ in self.root.glob("tried.*"))

    @property
    def submitted(self) -> bool:
        """Whether HTCondor has it, as far as the directory says."""
        return bool(self._text("id")) or bool(self.log_size())

    def log_size(self) -> int:
        """How much HTCondor has written of it."""
        try:
            return (self.root / "log").stat().st_size
        except FileNotFoundError:
            return 0

    def read_log(self) -> dict[int, LogEvent]:
        """What the log says of each of its jobs."""
        try:
            with (self.root / "log").open() as file:
                text, written = file.read(), moment(os.fstat(file.fileno()).st_mtime)
        except FileNotFoundError:
            text, written = "", None
        events = read_log(text, written)
        return {number: events.get(number, LogEvent()) for number in range(self.parts)}

    def record(self, number: int) -> JobRecord | None:
        """What a part wrote of its end."""
        try:
            return read_record((self.part(number) / "record.json").read_text())
        except OSError:
            return None

    @property
    def cancelled(self) -> str | None:
        """Who wanted it stopped."""
        return self._text("cancel") if (self.root / "cancel").exists() else None

    def cancel(self, by: str) -> None:
        """Write down who wants it stopped; the first stands."""
        with suppress(FileExistsError):
            file = os.open(self.root / "cancel", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w") as opened:
                opened.write(by)

    def collect(self, spool: str) -> None:
        """Take what stopped jobs had written out of HTCondor's spool."""
        for number, job in self.read_log().items():
            cluster, _, process = job.id.partition(".")
            if not (spool and cluster and process) or job.status == "exited":
                continue
            name = f"cluster{cluster}.proc{process}.subproc0"
            left = Path(spool, str(int(cluster) % SPREAD), str(int(process) % SPREAD), name)
            with suppress(OSError, shutil.Error):  # what can't be had is lost; its end is told all the same
                if left.is_dir():
                    shutil.copytree(left, self.part(number), symlinks=True, dirs_exist_ok=True)

    def join(self) -> Joined:
        """Put together what several parts left: their files, what they printed, and what their kind makes of it."""
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
        """Run the kind's own program, with the Python that is here."""
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
        """Part of what it printed; of several parts, while they run, of the first that runs and those before it."""
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
    """Move the files below one directory to another; what a kind needed to run is left out."""
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if Path(folder, name) != source / OWN]
        there = target / Path(folder).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            with suppress(OSError):  # a file where another part has a directory
                Path(folder, name).replace(there / name)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files below a directory."""
    if path.is_file():
        return path.stat().st_size
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def _holds_something(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())
