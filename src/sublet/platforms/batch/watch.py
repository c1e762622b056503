"""Watches many jobs as a good guest: one bulk query of the queue at a time, files in between, accounting if needed.

The scheduler is asked at most once in `every` seconds, and less often while it has trouble. The jobs' own records are
files, and may be read more often. Ended jobs are never asked for again.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sublet.booking.model.job import JobState, State
from sublet.booking.model.together import together
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.batch import commands as to
from sublet.platforms.batch.energy import EnergyAccounts
from sublet.platforms.batch.scheduler import Rows, Scheduler
from sublet.platforms.batch.states import QueueRow, SiteLook, await_files, jobs_of, judge, part_of, session_of, settle
from sublet.reach.port import Reach

SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the name of a session's job
ASKED_LATELY = 900.0  # seconds for which a job that nobody asks about is still watched
REMEMBERED = 5000  # ended jobs
AT_ONCE = 10  # jobs per query of the accounting
JOINED = 4  # sessions whose parts are joined at a time
SUBMITTED = JobState(State.QUEUED, condition="submitted")
AGAIN = 300.0  # seconds until accounting is asked again about a job that it doesn't know
SLOWEST = 16  # times the usual pause, while the scheduler has trouble


class SiteWatch:
    """The states of one platform's jobs, by their keys.

    Each part of a session in parts is a job like any other, called KEY/N, until they are joined.
    """

    def __init__(self, scheduler: Scheduler, platform: str, every: float, look: float, patience: float) -> None:
        """Start without any knowledge."""
        self._scheduler, self._failures = scheduler, scheduler.failures(platform)
        self.energy = EnergyAccounts(scheduler)
        self._every, self._look_every, self._patience = every, min(every, look), patience
        self._lock = asyncio.Lock()
        self._rows: Rows = {}
        self._queued_at = self._looked_at = float("-inf")
        self._slow = 1
        self._failure: PlatformUnreachable | None = None
        self._asked: dict[str, float] = {}
        self._looks: dict[str, SiteLook] = {}
        self._states: dict[str, JobState] = {}
        self._submitted: dict[str, float] = {}
        self._gone: dict[str, float] = {}
        self._recalled: dict[str, float] = {}
        self._cleaned: dict[str, float] = {}

    def heed(self, every: float, look: float) -> None:
        """Set the minimum seconds between queries of the queue, and between reads of the records."""
        self._every, self._look_every = every, min(every, look)

    def under_way(self) -> int:
        """Return how many sessions are known to be queued or running."""
        rows = {session_of(job) for job, row in self._rows.items() if self._is_active(row)}
        active = {name for name in rows if SESSION.fullmatch(name) and not self._over(name)}
        known = {session_of(key) for key, state in self._states.items() if state.state in (State.QUEUED, State.RUNNING)}
        return len(active | known)

    def note_submitted(self, key: str, id: str = "", parts: int = 1) -> None:
        """Record that a job was just submitted: it is queued, even if an older listing of the queue lacks it."""
        self.forget(key)
        self._submitted[key] = time.monotonic()
        self._looks[key] = SiteLook(claimed=True, id=id, parts=parts)
        self._states[key] = SUBMITTED

    def stir(self) -> None:
        """Ask again at the next opportunity, because something was done to a job."""
        self._queued_at = self._looked_at = float("-inf")

    def knows(self, key: str) -> bool:
        """Whether the session's state is known."""
        return key in self._states

    def forget(self, key: str) -> None:
        """Forget a session and its parts."""
        jobs = {key, *jobs_of(key, self.look(key).parts)}
        for job in jobs:
            self.energy.forget(job)
        for known in (self._asked, self._looks, self._states, self._submitted, self._gone, self._recalled):
            for job in jobs & known.keys():
                known.pop(job)

    def note_cleaned(self, key: str) -> None:
        """Record that a session's directory was removed: it is unknown now, though the queue may still show it."""
        now = time.monotonic()
        self.forget(key)
        self._cleaned = {old: when for old, when in self._cleaned.items() if now - when < ASKED_LATELY} | {key: now}

    def _is_cleaned_since(self, when: float, job: str) -> bool:
        return self._cleaned.get(session_of(job), float("-inf")) >= when

    def look(self, key: str) -> SiteLook:
        """Return what was last seen in the session's directory."""
        return self._looks.get(key, SiteLook())

    def find_number(self, key: str) -> str:
        """Return the scheduler's number of a job: as given at submit, or if that was lost, as the queue shows it."""
        if id := self.look(key).id:
            return id
        row = self._rows.get(key) or self._rows.get(part_of(key, 0))
        return row.number if row else ""

    def count(self) -> int:
        """Return how many jobs were in the queue when it was last read."""
        return sum(self._is_active(row) for row in self._rows.values())

    async def ask(self, reach: Reach, root: str, keys: Sequence[str]) -> dict[str, JobState]:
        """Return the states of these jobs, as fresh as the minimum intervals allow."""
        async with self._lock:
            now = time.monotonic()
            open_ = [key for key in keys if not self._over(key)]
            self._asked.update(dict.fromkeys(open_, now))
            if open_:
                await self._refresh(reach, root, open_, now)
            return {key: self._states.get(key) or JobState(State.UNKNOWN) for key in keys}

    def _is_active(self, row: QueueRow) -> bool:
        return self._scheduler.states.is_active(row)

    def _over(self, key: str) -> bool:
        state = self._states.get(key)
        return state is not None and state.state is State.ENDED

    async def _refresh(self, reach: Reach, root: str, wanted: Sequence[str], now: float) -> None:
        if all(now - self._submitted.get(key, float("-inf")) < self._look_every for key in wanted):
            return  # they were just submitted, and can't have got far
        queue_due = now - self._queued_at >= self._every * self._slow
        if self._failure and not queue_due:
            raise self._failure
        watched = self._list_watched(now)
        new = [key for key in wanted if key not in self._looks]
        keys = watched if queue_due or now - self._looked_at >= self._look_every else new
        if not keys and not queue_due:
            return
        rows = await self._see(reach, root, keys, queue_due, now)
        if rows is not None:
            self._rows = rows
        jobs = [job for key in self._list_seen(keys) for job in self._jobs(key)]
        unsettled = [job for job in jobs if not self._over(job) and not self._judge(job)]
        if queue_due or new:
            await self._recall(reach, [job for job in unsettled if self._late(job, now)], now)
        self._states |= await self.energy.add(reach, {job: self._states[job] for job in jobs if self._over(job)}, now)
        await self._put_together(reach, root, [key for key in self._list_seen(keys) if self._looks[key].parts > 1])
        self._trim()

    def _list_seen(self, keys: Iterable[str]) -> list[str]:
        """Return those keys that are still known, as some may have been cleaned up during a query."""
        return [key for key in keys if key in self._looks]

    def _list_watched(self, now: float) -> list[str]:
        for key in [key for key, when in self._asked.items() if now - when > ASKED_LATELY or self._over(key)]:
            del self._asked[key]
        return list(self._asked)

    async def _see(self, reach: Reach, root: str, keys: Sequence[str], queue: bool, now: float) -> Rows | None:
        """Read the queue if it is due, and the session directories, in one exec."""
        commands: list[Any] = [self._scheduler.to_queue(self._failures)] if queue else []
        commands += to.to_look(self._failures, root, keys)
        try:
            answers = await reach.run_all(commands)
        except PlatformUnreachable as error:
            if queue:
                self._queued_at, self._slow, self._failure = now, min(self._slow * 2, SLOWEST), error
            raise
        rows: Rows | None = None
        if queue:
            rows = answers.pop(0)
            self._queued_at, self._slow, self._failure = now, 1, None
        self._looked_at = now
        for looks in answers:
            self._looks.update({job: look for job, look in looks.items() if not self._is_cleaned_since(now, job)})
        return rows

    def _judge(self, key: str) -> bool:
        """Set a job's state from what was seen; return whether that was conclusive."""
        row, look, session = _of(key, self._rows), self._looks[key], session_of(key)
        if session in self._cleaned and not look.claimed:
            row = None
        if (
            self._submitted.get(session, float("-inf")) >= self._queued_at
            and not (row and self._is_active(row))
            and not look.ran
        ):
            return True  # the queue was read before the job was submitted
        state = judge(self._scheduler.states, look, row)
        if state:
            self._states[key] = state
            self._gone.pop(key, None)
        return state is not None

    def _late(self, key: str, now: float) -> bool:
        """Whether the wait for a job's record is over; if not, set its provisional state."""
        look = self._looks[key]
        if look.record or now - self._gone.setdefault(key, now) >= self._patience:
            return True
        self._states[key] = (
            await_files(look, _of(key, self._rows)) if look.ran else settle(self._scheduler.states, look)
        )
        return False

    async def _recall(self, reach: Reach, keys: Sequence[str], now: float) -> None:
        """Ask the scheduler's accounting about jobs that neither the queue nor the files explain."""
        some = [key for key in keys if now - self._recalled.get(key, float("-inf")) >= AGAIN][:AT_ONCE]
        kept: Rows = {}
        if some:
            self._recalled.update(dict.fromkeys(some, now))
            sessions = list(dict.fromkeys(map(session_of, some)))
            ids = [id for key in sessions if (id := self._looks[key].id)]
            for rows in reversed(await reach.run_all(self._scheduler.to_remember(ids, sessions))):
                kept |= rows
        for key in self._list_seen(keys):
            row, look = _of(key, kept), self._looks[key]
            self._states[key] = (judge(self._scheduler.states, look, row) if row else None) or settle(
                self._scheduler.states, look
            )

    async def _put_together(self, reach: Reach, root: str, keys: Sequence[str]) -> None:
        """Set the states of sessions in parts; join the results of those whose parts have all ended."""
        ended = [key for key in keys if all(map(self._over, self._jobs(key))) and not self._looks[key].joined][:JOINED]
        answers = await reach.run_all([to.to_join(root, key) for key in ended]) if ended else []
        for key, joined in zip(ended, answers, strict=True):
            if key in self._looks:
                self._looks[key] = replace(self._looks[key], joined=joined)
        for key in self._list_seen(keys):
            self._states[key] = together([self._part(job) for job in self._jobs(key)], self._looks[key].joined)

    def _jobs(self, key: str) -> list[str]:
        return jobs_of(key, self._looks[key].parts)

    def _part(self, job: str) -> JobState:
        """Return the state of a part with the end of its time; a queued part has its whole time still ahead."""
        state, look = self._states.get(job, SUBMITTED), self._looks.get(job)
        if state.state is State.ENDED or look is None or look.lasts is None:
            return state
        return replace(state, until=look.ends or datetime.now(UTC) + look.lasts)

    def _trim(self) -> None:
        ended: Iterable[str] = (key for key in self._states if key == session_of(key) and self._over(key))
        for key in list(islice(ended, max(0, len(self._states) - REMEMBERED))):
            self.forget(key)


def _of(job: str, rows: Mapping[str, QueueRow]) -> QueueRow | None:
    """Return the row of a job; a part without a row of its own has that of the whole array."""
    return rows.get(job) or rows.get(session_of(job))
