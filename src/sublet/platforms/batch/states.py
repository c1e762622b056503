"""A job's state, from everything that is known: its own record, the queue, and the scheduler's accounting.

A job's own record, written by the script that ran it, says most. What the script can't know (who killed it, or that the
node failed) comes from the scheduler. If neither knows, the state is *unknown*; nothing is made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from signal import Signals

from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.session import HELD, STOPPED, Connector, End, EndKind, Usage, describe_pause
from sublet.booking.model.together import Joined

ELSEWHERE = "someone on the system itself, not through Sublet"
NO_DIRECTORY, HAD_RUN = 70, 71  # exit codes of job.sh when it runs nothing


BY_OTHERS = "by an administrator there, who alone can release it"  # the reason of a job that its owner can't release


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A job as the queue or the scheduler's accounting shows it."""

    id: str
    name: str
    state: str  # in the scheduler's words
    reason: str = ""
    start: datetime | None = None  # the planned start, while queued
    end: datetime | None = None
    queue: str = ""
    nodes: str = ""
    code: int | None = None  # the script's exit code, which is also the program's
    signal: int = 0
    by: str = ""  # the uid that cancelled it
    array: str = ""  # of a part: the number of the whole array

    @property
    def number(self) -> str:
        """The scheduler's number of the whole job."""
        return self.array or self.id


@dataclass(frozen=True, slots=True)
class StateTable:
    """The meaning of a scheduler's states: its words → ours."""

    title: str  # the scheduler's name for people
    waits: Mapping[str, str]
    runs: Mapping[str, str]  # a description, if it isn't simply running
    ends: Mapping[str, tuple[EndKind, str]]  # those that say more than that it has ended
    held: str = ""  # the reason shown for a job that its own user holds; others' holds have another, or BY_OTHERS

    def is_active(self, row: QueueRow) -> bool:
        """Whether the job is queued or running."""
        return row.state in self.waits or row.state in self.runs


@dataclass(frozen=True, slots=True)
class EndRecord:
    """A job's own record of its end."""

    kind: str
    code: int
    by: str
    detail: str
    started: datetime
    ended: datetime
    job: str
    node: str
    oom: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class SiteLook:
    """What a session's directory says."""

    claimed: bool = False  # it was submitted, or that was tried
    ran: bool = False
    timed: bool = False  # its own clock stopped it
    termed: bool = False  # someone else stopped it
    paused: bool = False
    id: str = ""
    began: datetime | None = None
    ends: datetime | None = None  # by its own clock
    cancel: str | None = None  # who cancelled it
    warning: str = ""
    connector: str = ""  # its kind, and the node and port where it listens
    record: EndRecord | None = None
    lasts: timedelta | None = None  # from its start
    parts: int = 1  # how many parts the session has, each with its own look
    joined: Joined | None = None  # of a session in parts: the joined results
    words: str = field(default="", compare=False)  # the scheduler's last message about it

    @property
    def certain(self) -> bool:
        """Whether the job's record alone is conclusive."""
        if self.record is None or self.record.kind == "terminated":
            return False
        return self.record.oom or self.record.kind != "exited" or self.record.code <= 128


def part_of(key: str, number: int) -> str:
    """Return the name of one part of a session; keys have no slash."""
    return f"{key}/{number}"


def jobs_of(key: str, parts: int) -> list[str]:
    """Return the jobs of a session: itself, or each of its parts."""
    return [key] if parts == 1 else [part_of(key, number) for number in range(parts)]


def session_of(job: str) -> str:
    """Return the session that a job belongs to."""
    return job.partition("/")[0]


def judge(table: StateTable, look: SiteLook, row: QueueRow | None) -> JobState | None:
    """Return the state of a job; None if its record is still expected or the scheduler's accounting must be asked."""
    active = row is not None and table.is_active(row)
    if not look.claimed:
        return _of_queue(table, look, row) if row and active else JobState(State.UNKNOWN)
    if look.certain or (look.record and row and not active):
        return _describe_ended(table, look, row)
    if row and active:
        return _of_queue(table, look, row)
    return _describe_ended(table, look, row) if row and (row.state in table.ends or row.code is not None) else None


def await_files(look: SiteLook, row: QueueRow | None) -> JobState:
    """Return the state of a job that has just left the queue, as its files may appear with a delay."""
    started = look.began or (row.start if row else None)
    return JobState(State.RUNNING, started=started, condition="it has ended; its record is awaited")


def settle(table: StateTable, look: SiteLook) -> JobState:
    """Return the final state of a job that the scheduler no longer knows."""
    if look.record or (look.cancel is not None and not look.ran) or look.timed or look.termed:
        return _describe_ended(table, look, None)
    words = "unknown: it is not in the queue, and there is no record of it yet"
    return JobState(State.UNKNOWN, started=look.began, condition=words)


def _of_queue(table: StateTable, look: SiteLook, row: QueueRow) -> JobState:
    """Return the state of a job in the queue."""
    if row.state in table.runs or look.ran:  # the listing of the queue may be older than the start
        phrase = table.runs.get(row.state, "")
        words = phrase and f"{table.title} job {row.id} {phrase}"
        if look.paused:
            words = describe_pause(STOPPED)
        elif look.warning:
            words = f"ends soon, at {look.warning}"
        way = read_connector(look.connector)
        marks = PAUSED if look.paused else NONE
        return JobState(State.RUNNING, started=look.began or row.start, condition=words, connector=way, marks=marks)
    where = f" in {row.queue}" if row.queue else ""  # some schedulers choose it when they start a job
    if table.held and row.reason == table.held:
        words = describe_pause(f"{HELD}, as {table.title} job {row.id}{where}")
        return JobState(State.QUEUED, condition=words, marks=PAUSED)
    reason = f" ({row.reason})" if row.reason not in ("", "None") else ""
    plan = f"; planned to start at {row.start:%Y-%m-%d %H:%M} UTC" if row.start else ""
    waits = f"{table.title} job {row.id} {table.waits[row.state]}{where}{reason}{plan}"
    return JobState(State.QUEUED, condition=waits)


def read_connector(text: str) -> Connector | None:
    """Read where a job listens from its own record: `uri:shell c1:23456`."""
    kind, _, place = text.partition(" ")
    return Connector(kind, "AVAILABLE", "HTTP", place) if place else None


def _describe_ended(table: StateTable, look: SiteLook, row: QueueRow | None) -> JobState:
    record = look.record
    started = record.started if record else look.began or (row.start if row else None)
    ended = record.ended if record else row.end if row else None
    end = _end(table, look, row)
    return JobState(State.ENDED, end, started, ended)


def _end(table: StateTable, look: SiteLook, row: QueueRow | None) -> End:
    """Return how a job ended; what stopped it from outside counts before its own record, unless that is certain."""
    record = look.record
    usage = record.usage if record else None
    detail = record.detail if record else ""
    if record and record.oom:
        return End(EndKind.OUT_OF_MEMORY, _plain(record.code), detail="the kernel stopped it", usage=usage)
    if record and look.certain and record.kind != "exited":
        return End(EndKind(record.kind), by=record.by, detail=detail, usage=usage)
    if row and row.state in table.ends and not look.certain:
        kind, words = table.ends[row.state]
        if kind is not EndKind.CANCELLED:
            return End(kind, detail=look.words or words, usage=usage)
        return _describe_cancelled(look, row, usage)
    if record and record.kind == "exited":
        return _read_exit(record.code, 0, usage, detail)
    if look.cancel is not None:
        return _describe_cancelled(look, row, usage)
    if look.timed:
        return End(EndKind.TIMEOUT, usage=usage)
    if row and row.code is not None and record is None:
        return _read_schedulers_record(table, look, row.code, row.signal)
    return _describe_cancelled(look, row, usage)


def _read_schedulers_record(table: StateTable, look: SiteLook, code: int, signal: int) -> End:
    """Return how a job ended by the scheduler's record alone.

    Two exit codes are the job script's, not the program's.
    """
    if code == HAD_RUN and look.ran:
        words = f"{table.title} started it again, and nothing runs twice: there is no record of how it ended at first"
        return End(EndKind.UNKNOWN, detail=words)
    if code == NO_DIRECTORY and not look.ran:
        return End(EndKind.NOT_STARTED, detail="its node did not see the session's directory")
    return _read_exit(code, signal, None, f"by {table.title}'s record: the job left none of its own")


def _describe_cancelled(look: SiteLook, row: QueueRow | None, usage: Usage | None) -> End:
    elsewhere = f"uid {row.by} on the system itself" if row and row.by else ELSEWHERE
    detail = "" if look.ran else "it had not started"
    return End(EndKind.CANCELLED, by=look.cancel if look.cancel is not None else elsewhere, detail=detail, usage=usage)


def _plain(code: int) -> int | None:
    return code if code <= 128 else None


def _read_exit(code: int, signal: int, usage: Usage | None, detail: str = "") -> End:
    """Return the end for an exit code; above 128 it stands for a signal, as in a shell."""
    number = signal or code - 128
    if number in set(Signals):
        return End(EndKind.SIGNALLED, signal=number, detail=detail, usage=usage)
    return End(EndKind.EXITED, code=code, detail=detail, usage=usage)
