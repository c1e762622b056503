"""How a job on HTCondor is doing, out of its log, its own record, and who wanted it stopped.

HTCondor starts a job again by itself when its node is lost. A session is never run twice: once its program was started
and it came back without an end, that is its end.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from signal import Signals

from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import PAUSED
from sublet.booking.model.session import HELD, STOPPED, End, EndKind, Usage, describe_pause
from sublet.platforms.htcondor.log import LogEvent

ELSEWHERE = "someone at the access point itself, not through Sublet"
REMOVED_BY = re.compile(r"via condor_rm \(by user (\S+)\)")
NO_ROOM = re.compile(r"no space left|quota exceeded", re.IGNORECASE)
SPENT = re.compile(r"(\d+)m([\d.]+)s")
TRIES = 5  # how often a job that was never started is given to a node
BY_PERSON = 1  # HTCondor's number for a hold that someone asked for
SPOOLING = 16  # and for one that ends by itself
HOLDS: dict[int, tuple[EndKind, str]] = {  # HTCondor's number for why a job is held → what that means for a session
    6: (EndKind.NOT_STARTED, "the node could not start it"),
    7: (EndKind.NOT_STARTED, "its output could not be opened"),
    12: (EndKind.STAGING_FAILED, "what it left could not be brought back"),
    13: (EndKind.STAGING_FAILED, "what it needs could not be brought to the node"),
    34: (EndKind.OUT_OF_MEMORY, "it used more than it had asked for"),
    46: (EndKind.TIMEOUT, "HTCondor's limit for jobs was reached"),
    47: (EndKind.TIMEOUT, "HTCondor's limit for jobs was reached"),
}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What the job wrote of its own end."""

    kind: str  # exited, terminated, or another end as a session has it
    code: int
    detail: str
    started: datetime
    ended: datetime
    usage: Usage


def read_record(text: str) -> JobRecord | None:
    """A job's own record of its end; None if there is none."""
    try:
        said = json.loads(text)
        started, ended = float(said["started"]), float(said["ended"])
        cpu = sum(60 * int(minutes) + float(seconds) for minutes, seconds in SPENT.findall(said["times"]))
        usage = Usage(round(ended - started, 3), round(cpu, 3), int(said["peak"]))
        moments = datetime.fromtimestamp(started, UTC), datetime.fromtimestamp(ended, UTC)
        return JobRecord(said["kind"], int(said["code"]), said["detail"], *moments, usage)
    except (ValueError, KeyError, TypeError):
        return None


def judge(told: LogEvent, record: JobRecord | None, cancel: str | None, tries: int | None = None) -> JobState:
    """What is true of a job; `tries`: the queue says that it waits, and was given to a node so often."""
    if told.status == "exited":
        return _over(told, record, _exit(told, record))
    if told.status == "removed":
        return _over(told, record, _removal(told, record, cancel))
    if told.status == "held" and told.hold not in (BY_PERSON, SPOOLING):
        return _over(told, record, _hold(told))
    if (
        told.status == "waits"
        and told.back
        and tries is not None
        and cancel is None
        and (told.starts or tries >= TRIES)
    ):
        return _over(told, record, _describe_loss(told, tries or 0))
    return _going_on(told)


def _describe_loss(told: LogEvent, tries: int) -> End:
    """It came back without an end, and stays back."""
    why = told.reason or "its node was lost"
    if told.starts:
        detail = f"{why}; it had been started, so it is not started again"
        return End(EndKind.NODE_LOST, detail=detail, usage=_usage(told, None))
    return End(EndKind.NOT_STARTED, detail=f"{tries} tries failed before it was started, the last one: {why}")


def _going_on(told: LogEvent) -> JobState:
    if not told.status:
        return JobState(State.QUEUED, condition="submitted")
    named = f"HTCondor job {told.id}"
    if told.status in ("runs", "suspended"):
        words = {
            "lost": f"the connection to its node is lost, and HTCondor tries to find it again: {told.reason}",
            "output": "its results are being brought back",
        }.get(told.busy, "")
        if told.status == "suspended":
            return JobState(State.RUNNING, started=told.started, condition=describe_pause(STOPPED), marks=PAUSED)
        return JobState(State.RUNNING, started=told.started, condition=words)
    if told.status == "held":
        if told.hold == BY_PERSON:
            return JobState(State.QUEUED, condition=describe_pause(HELD), marks=PAUSED)
        return JobState(State.QUEUED, condition=f"{named} is held: {told.reason}")
    words = "is getting its files" if told.busy == "input" else "waits for a slot"
    again = f"; a try failed before it was started: {told.reason}" if told.back and not told.starts else ""
    return JobState(State.QUEUED, condition=f"{named} {words}{again}")


def _over(told: LogEvent, record: JobRecord | None, end: End) -> JobState:
    started = record.started if record else told.started
    return JobState(State.ENDED, end, started, record.ended if record else told.changed)


def _usage(told: LogEvent, record: JobRecord | None) -> Usage | None:
    if record:
        return Usage(record.usage.wall, max(record.usage.cpu, told.cpu), max(record.usage.peak_memory, told.memory))
    if not told.starts:
        return None
    wall = (told.changed - told.started).total_seconds() if told.changed and told.started else 0.0
    return Usage(wall, told.cpu, told.memory)


def _exit(told: LogEvent, record: JobRecord | None) -> End:
    usage = _usage(told, record)
    if record and record.kind not in ("exited", "terminated"):
        return End(EndKind(record.kind), detail=record.detail, usage=usage)
    code = record.code if record else told.code
    number = told.signal or (code or 0) - 128
    detail = "" if record else "by HTCondor's record: the job left none of its own"
    if number in set(Signals):
        return End(EndKind.SIGNALLED, signal=number, detail=detail, usage=usage)
    return End(EndKind.EXITED, code=code, detail=detail, usage=usage)


def _removal(told: LogEvent, record: JobRecord | None, cancel: str | None) -> End:
    usage = _usage(told, record)
    user = REMOVED_BY.search(told.reason)
    detail = "" if told.starts else "it had not started"
    if cancel is not None:
        return End(EndKind.CANCELLED, by=cancel, detail=detail, usage=usage)
    by = f"{user[1]} at the access point itself" if user else ELSEWHERE
    return End(EndKind.CANCELLED, by=by, detail=detail or ("" if user else told.reason), usage=usage)


def _hold(told: LogEvent) -> End:
    kind, words = HOLDS.get(told.hold, (EndKind.UNKNOWN if told.starts else EndKind.NOT_STARTED, "HTCondor held it"))
    if kind is EndKind.STAGING_FAILED and NO_ROOM.search(told.reason):
        kind = EndKind.DISK_FULL
    return End(kind, detail=f"{words}: {told.reason}" if told.reason else words, usage=_usage(told, None))
