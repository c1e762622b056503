"""The process of an access point: its condor_master, which outlives the process that started it and is found again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from sublet.kernel.descriptors import restore_limit
from sublet.kernel.errors import AccessPointFailed
from sublet.platforms.htcondor.release import MASTER, Release

PATIENCE, ORPHANS_PATIENCE = 30.0, 3.0  # seconds to end, with and without a master, until they are killed
_LAST_LINES = 5


class Master:
    """The daemons of one configuration file, recognised by its path in their environment."""

    def __init__(self, configuration: Path, logs: Path) -> None:
        """Prepare the master without starting it."""
        self.configuration, self.logs = configuration, logs
        self._started: subprocess.Popen[bytes] | None = None
        self._found: int | None = None

    def pid(self) -> int | None:
        """Return the master's pid, whichever process started it; None if it isn't running."""
        return next((pid for pid in self.processes() if _name(pid) == MASTER), None)

    def processes(self) -> list[int]:
        """Return all processes with this configuration: the master, its daemons and their children."""
        mark = b"CONDOR_CONFIG=" + os.fsencode(self.configuration)
        return [pid for pid in _own_processes() if mark in _environment(pid)]

    def start(self, release: Release) -> None:
        """Start the master in its own session."""
        path = f"{release.bin}:{release.sbin}:{os.environ.get('PATH', os.defpath)}"
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("_CONDOR_")}
        with open(os.open(self.logs / "start", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            self._started = subprocess.Popen(
                [release.program(MASTER), "-f"],
                env={**kept, "PATH": path, "CONDOR_CONFIG": str(self.configuration)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
            )
            restore_limit(self._started.pid)

    def alive(self) -> bool:
        """Whether the master that was last started or found is still running; cheaper than searching for it."""
        if self._started is not None:
            return self._started.poll() is None
        self._found = self._found or self.pid()
        return self._found is not None and _name(self._found) == MASTER

    def check(self) -> None:
        """Raise AccessPointFailed, with its last log lines, if the master that was started here has ended."""
        if self._started is not None and self._started.poll() is not None:
            raise AccessPointFailed(why=self.last_words(), logs=self.logs)

    def last_words(self) -> str:
        """Return the last lines of its logs."""
        lines = [*_lines(self.logs / "start"), *_lines(self.logs / "MasterLog")[-_LAST_LINES:]]
        return "\n  ".join(lines) or "it said nothing"

    async def stop(self) -> None:
        """Stop all its processes: gracefully, then by force."""
        master = self.pid()
        deadline = time.monotonic() + (ORPHANS_PATIENCE if master is None else PATIENCE)
        if master is not None:
            _send(master, signal.SIGQUIT)  # fast: shadows end, and running jobs are found again at the next start
        while left := self.processes():
            if self._started is not None:
                self._started.poll()
            if time.monotonic() > deadline:
                for pid in left:
                    _send(pid, signal.SIGKILL)
            await asyncio.sleep(0.05)
        self._started = None


def _own_processes() -> list[int]:
    pids = []
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and entry.stat().st_uid == os.getuid():
                pids.append(int(entry.name))
        except OSError:
            continue  # it has ended meanwhile
    return sorted(pids)


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended meanwhile, or changed its user


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has already ended


def _lines(file: Path) -> list[str]:
    try:
        return [line for line in file.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
