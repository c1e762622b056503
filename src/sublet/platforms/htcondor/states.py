"""The state of an HTCondor job, from its log, its own record, and who cancelled it.

HTCondor restarts a job by itself when its node is lost. A session never runs twice: if its program was started and it
came back without an end, that is its end.
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
TRIES = 5  # how often a job that was never started is sent to a node
BY_PERSON = 1  # HTCondor's code for a hold by a user
SPOOLING = 16  # and for one that ends by itself
HOLDS: dict[int, tuple[EndKind, str]] = {  # HTCondor's code for why a job is held → what that means for a session
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
    """A job's own record of its end."""

    kind: str  # exited, terminated, or another kind of end
    code: int
    detail: str
    started: datetime
    ended: datetime
    usage: Usage


def read_record(text: str) -> JobRecord | None:
    """Read a job's own record of its end; None if there is none."""
    try:
        record = json.loads(text)
        started, ended = float(record["started"]), float(record["ended"])
        cpu = sum(60 * int(minutes) + float(seconds) for minutes, seconds in SPENT.findall(record["times"]))
        usage = Usage(round(ended - started, 3), round(cpu, 3), int(record["peak"]))
        moments = datetime.fromtimestamp(started, UTC), datetime.fromtimestamp(ended, UTC)
        return JobRecord(record["kind"], int(record["code"]), record["detail"], *moments, usage)
    except (ValueError, KeyError, TypeError):
        return None


def judge(event: LogEvent, record: JobRecord | None, cancel: str | None, tries: int | None = None) -> JobState:
    """Return the state of a job; `tries` is how often it was sent to a node, if the queue says that it is idle."""
    if event.status == "exited":
        return _over(event, record, _exit(event, record))
    if event.status == "removed":
        return _over(event, record, _removal(event, record, cancel))
    if event.status == "held" and event.hold not in (BY_PERSON, SPOOLING):
        return _over(event, record, _hold(event))
    if (
        event.status == "waits"
        and event.back
        and tries is not None
        and cancel is None
        and (event.starts or tries >= TRIES)
    ):
        return _over(event, record, _describe_loss(event, tries or 0))
    return _going_on(event)


def _describe_loss(event: LogEvent, tries: int) -> End:
    """Return the end of a job that came back without an end, and isn't tried again."""
    why = event.reason or "its node was lost"
    if event.starts:
        detail = f"{why}; it had been started, so it is not started again"
        return End(EndKind.NODE_LOST, detail=detail, usage=_usage(event, None))
    return End(EndKind.NOT_STARTED, detail=f"{tries} tries failed before it was started, the last one: {why}")


def _going_on(event: LogEvent) -> JobState:
    if not event.status:
        return JobState(State.QUEUED, condition="submitted")
    named = f"HTCondor job {event.id}"
    if event.status in ("runs", "suspended"):
        words = {
            "lost": f"the connection to its node is lost, and HTCondor tries to find it again: {event.reason}",
            "output": "its results are being brought back",
        }.get(event.busy, "")
        if event.status == "suspended":
            return JobState(State.RUNNING, started=event.started, condition=describe_pause(STOPPED), marks=PAUSED)
        return JobState(State.RUNNING, started=event.started, condition=words)
    if event.status == "held":
        if event.hold == BY_PERSON:
            return JobState(State.QUEUED, condition=describe_pause(HELD), marks=PAUSED)
        return JobState(State.QUEUED, condition=f"{named} is held: {event.reason}")
    words = "is getting its files" if event.busy == "input" else "waits for a slot"
    again = f"; a try failed before it was started: {event.reason}" if event.back and not event.starts else ""
    return JobState(State.QUEUED, condition=f"{named} {words}{again}")


def _over(event: LogEvent, record: JobRecord | None, end: End) -> JobState:
    started = record.started if record else event.started
    return JobState(State.ENDED, end, started, record.ended if record else event.changed)


def _usage(event: LogEvent, record: JobRecord | None) -> Usage | None:
    if record:
        return Usage(record.usage.wall, max(record.usage.cpu, event.cpu), max(record.usage.peak_memory, event.memory))
    if not event.starts:
        return None
    wall = (event.changed - event.started).total_seconds() if event.changed and event.started else 0.0
    return Usage(wall, event.cpu, event.memory)


def _exit(event: LogEvent, record: JobRecord | None) -> End:
    usage = _usage(event, record)
    if record and record.kind not in ("exited", "terminated"):
        return End(EndKind(record.kind), detail=record.detail, usage=usage)
    code = record.code if record else event.code
    number = event.signal or (code or 0) - 128
    detail = "" if record else "by HTCondor's record: the job left none of its own"
    if number in set(Signals):
        return End(EndKind.SIGNALLED, signal=number, detail=detail, usage=usage)
    return End(EndKind.EXITED, code=code, detail=detail, usage=usage)


def _removal(event: LogEvent, record: JobRecord | None, cancel: str | None) -> End:
    usage = _usage(event, record)
    user = REMOVED_BY.search(event.reason)
    detail = "" if event.starts else "it had not started"
    if cancel is not None:
        return End(EndKind.CANCELLED, by=cancel, detail=detail, usage=usage)
    by = f"{user[1]} at the access point itself" if user else ELSEWHERE
    return End(EndKind.CANCELLED, by=by, detail=detail or ("" if user else event.reason), usage=usage)


def _hold(event: LogEvent) -> End:
    kind, words = HOLDS.get(event.hold, (EndKind.UNKNOWN if event.starts else EndKind.NOT_STARTED, "HTCondor held it"))
    if kind is EndKind.STAGING_FAILED and NO_ROOM.search(event.reason):
        kind = EndKind.DISK_FULL
    return End(kind, detail=f"{words}: {event.reason}" if event.reason else words, usage=_usage(event, None))
