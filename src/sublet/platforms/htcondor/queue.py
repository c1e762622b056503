"""The queue of an access point, as a platform's sessions need it, through the local HTCondor tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import TypeVar

from sublet.annexes.model.annex import JOB_SESSION
from sublet.booking.model.session import CONTINUED, HELD, RELEASED, STOPPED
from sublet.kernel.errors import (
    AccessPointRefused,
    AccessPointUnreachable,
    DiskFull,
    NoHTCondor,
    PlatformRefused,
    PlatformUnreachable,
)
from sublet.platforms.htcondor import commands as to
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.job import script
from sublet.platforms.htcondor.offers import View, to_see, to_see_jobs
from sublet.platforms.htcondor.release import find_release
from sublet.platforms.htcondor.slots import to_config
from sublet.platforms.htcondor.tools import Tools, reading
from sublet.reach.local import LocalReach
from sublet.reach.port import Command, Outcome

T = TypeVar("T")
CUT_OFF = 75  # exit code: an earlier try to submit was interrupted, with an unknown result
AT_ONCE = 200  # sessions per command


class CondorQueue:
    """One access point; it raises the errors that platforms raise."""

    def __init__(self, platform: str, programs: str, configuration: str, gathering: str) -> None:
        """Set up; HTCondor's programs are looked for when they are needed."""
        self._platform, self._programs = platform, programs
        self._configuration, self._gathering = configuration, gathering
        self._here = LocalReach(platform)
        self._found: Tools | None = None
        self._spool = ""

    @property
    def tools(self) -> Tools:
        """HTCondor's tools, for jobs."""
        if self._found is None:
            try:
                release = find_release(Path(self._programs or os.devnull))
            except NoHTCondor as error:
                raise PlatformUnreachable(platform=self._platform, why=error.message, hint=error.advice) from error
            self._found = Tools(release, self._configuration)
        return self._found

    async def _run(self, command: Command[T]) -> T:
        with self.words():
            return await self._here.run(command)

    @contextmanager
    def words(self) -> Iterator[None]:
        """Translate errors of the access point and the operating system into those of platforms."""
        try:
            yield
        except AccessPointUnreachable as error:
            why = str(error.values.get("why", error.message))
            raise PlatformUnreachable(platform=self._platform, why=why) from error
        except AccessPointRefused as error:
            why = str(error.values.get("why", error.message))
            raise PlatformRefused(platform=self._platform, why=why) from error
        except OSError as error:
            kind = DiskFull if error.errno in (ENOSPC, EDQUOT) else PlatformUnreachable
            raise kind(platform=self._platform, why=str(error)) from error

    async def view(self, annex: str) -> View:
        """Return the slots that report now, and the running and queued jobs."""
        gathering = Tools(self.tools.release, self._gathering) if self._gathering else self.tools
        slots = await self._run(to_see(gathering, annex))
        jobs = await self._run(to_see_jobs(self.tools, annex))
        return View(datetime.now(UTC), tuple(slots), tuple(jobs))

    async def submit(self, directory: Path, tries: int) -> bool:
        """Submit a session's description, once.

        Return False if an earlier try was interrupted, and must be looked up.
        """
        words = self.tools.words("condor_submit", "-terse", "-file", "description", directory=str(directory))
        sh = ("sh", "-c", script("submit"), "sublet", str(directory), str(tries), *words)
        return await self._run(Command(sh, _read_submitted, seconds=300))

    async def settle_tries(self, directory: Path) -> None:
        """Wait until any process that submits there has ended."""
        await self._run(Command(("flock", str(directory / "lock"), "true"), reading(str), seconds=300))

    async def find(self, key: str) -> str:
        """Return the cluster of a session's jobs, from the queue or its history; empty if neither has it."""
        for command in (to.to_queue, to.to_history):
            ads = await self._run(command(self.tools, of(key), ("ClusterId",)))
            if ads:
                return str(ads[0]["ClusterId"])
        return ""

    async def absent(self, keys: Sequence[str]) -> list[str]:
        """Return the sessions of which the queue has no job, with one query for all."""
        if not keys:
            return []
        ads = await self._run(to.to_queue(self.tools, f"{JOB_SESSION} =!= undefined", (JOB_SESSION,)))
        there = {ad.get(JOB_SESSION) for ad in ads}
        return [key for key in keys if key not in there]

    async def jobs_of(self, key: str) -> tuple[set[int], dict[int, int]]:
        """Return the numbers of a session's jobs in the queue, and the idle ones with how often each was tried."""
        wanted = ("ProcId", "JobStatus", "NumShadowStarts")
        ads = await self._run(to.to_queue(self.tools, of(key), wanted))
        idle = {ad["ProcId"]: ad.get("NumShadowStarts") or 0 for ad in ads if ad["JobStatus"] == to.IDLE}
        return {ad["ProcId"] for ad in ads}, idle

    async def let_try(self, key: str, tries: Mapping[int, int]) -> None:
        """Allow one more try for jobs that were already sent to a node this often."""
        for number, already in tries.items():
            if already:
                clause = f"{of(key)} && ProcId == {number}"
                await self._run(to.to_edit(self.tools, clause, {"SubletTries": str(already + 1)}))

    async def remove(self, keys: Sequence[str]) -> None:
        """Have sessions' jobs stopped and removed."""
        for first in range(0, len(keys), AT_ONCE):
            await self._run(to.to_remove(self.tools, " || ".join(map(of, keys[first : first + AT_ONCE]))))

    async def forget(self, key: str) -> None:
        """Remove all jobs of a session from the queue."""
        await self._run(to.to_remove(self.tools, f"{of(key)} && JobStatus != {to.REMOVED}"))
        await self._run(to.to_forget(self.tools, of(key)))

    async def pause(self, key: str) -> str:
        """Hold queued jobs and suspend running ones; return which of the two."""
        held = await self._run(to.to_hold(self.tools, f"{of(key)} && JobStatus == {to.IDLE}", "paused by Sublet"))
        stopped = await self._run(to.to_suspend(self.tools, f"{of(key)} && JobStatus == {to.RUNNING}"))
        return STOPPED if stopped or not held else HELD

    async def resume(self, key: str) -> str:
        """Release held jobs and continue suspended ones; return which of the two."""
        released = await self._run(to.to_release(self.tools, f"{of(key)} && JobStatus == {to.HELD}"))
        went_on = await self._run(to.to_continue(self.tools, f"{of(key)} && JobStatus == {to.SUSPENDED}"))
        return CONTINUED if went_on or not released else RELEASED

    async def spool(self) -> str:
        """Return HTCondor's spool directory, which has the files of stopped jobs; empty if unknown."""
        if not self._spool:
            self._spool = (await self._run(to_config(self.tools, "SPOOL"))).get("SPOOL", "")
        return self._spool


def of(key: str) -> str:
    """Return the constraint that names the jobs of a session."""
    return f"({JOB_SESSION} == {quote_string(key)})"


def _read_submitted(outcome: Outcome) -> bool:
    """Read the output of `submit.sh`: True if submitted, False if an earlier try was interrupted.

    Raise other errors.
    """
    if outcome.code == CUT_OFF:
        return False
    reading(to.read_submitted)(outcome)
    return True
