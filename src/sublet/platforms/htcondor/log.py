"""Reader for HTCondor's own log of a session's jobs, which is kept in the session's directory.

The access point writes an event the moment it happens, and a start before the program is started. So the log shows
whether a job ever began, without asking anybody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

HEADER = re.compile(r"(\d{3}) \((\d+)\.(\d+)\.\d+\) ((?:\d{4}-)?\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d)\S* (.*)")
REASON = re.compile(r"^\s*Reason: (.*)$", re.MULTILINE)
RETURNED = re.compile(r"\(1\) Normal termination \(return value (\d+)\)")
SIGNALLED = re.compile(r"\(0\) Abnormal termination \(signal (\d+)\)")
HELD = re.compile(r"^\s*Code (\d+) Subcode (-?\d+)", re.MULTILINE)
SPENT = re.compile(r"Usr (\d+) (\d\d):(\d\d):(\d\d), Sys (\d+) (\d\d):(\d\d):(\d\d)\s+-\s+Total Remote Usage")
MEMORY = re.compile(r"Memory \(MB\)\s*:\s*(\d+)")
USED = re.compile(r"^\s*(\d+)\s+-\s+MemoryUsage of job \(MB\)", re.MULTILINE)
MIB = 1 << 20
QUARTER = timedelta(minutes=15)  # time zones differ by multiples of this


@dataclass(frozen=True, slots=True)
class LogEvent:
    """The state of one job by the log."""

    id: str = ""  # HTCondor's own ID, such as 12.0
    status: str = ""  # waits, runs, suspended, held, exited, removed; empty: it was never submitted
    starts: int = 0  # how often its program was started
    back: bool = False  # whether it came back from a node without having ended
    started: datetime | None = None  # the last time
    changed: datetime | None = None  # the last event
    code: int | None = None
    signal: int | None = None
    reason: str = ""  # why it was held or removed, or came back
    hold: int = 0  # HTCondor's code for why it is held
    detail: int = 0
    cpu: float = 0.0
    memory: int = 0  # in bytes, as measured by HTCondor
    busy: str = ""  # what is going on: input, output, lost

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.status in ("exited", "removed")


def read_log(text: str, written: datetime | None = None) -> dict[int, LogEvent]:
    """Read each job by its number in the cluster; an event that was cut off by a crash is left out.

    The log has local times of the access point without their zone, which is derived from `written`, the real time of
    the last event.
    """
    events: dict[int, LogEvent] = {}
    last: datetime | None = None
    for event in text.split("\n...\n")[:-1]:
        head, _, body = event.lstrip("\n").partition("\n")
        if header := HEADER.match(head):
            number, cluster, job, when, title = header.groups()
            last = _moment(when)
            known = replace(events.get(int(job), LogEvent()), id=f"{int(cluster)}.{int(job)}", changed=last)
            events[int(job)] = _after(known, int(number), title, body)
    by = round((written - last) / QUARTER) * QUARTER if written and last else timedelta(0)
    return {job: _move(told, by) for job, told in events.items()}


def _moment(text: str) -> datetime:
    """Read a time of the access point as if its zone were UTC."""
    if "/" in text:
        text = f"{datetime.now(UTC).year}-{text.replace('/', '-')}"
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _move(event: LogEvent, by: timedelta) -> LogEvent:
    return replace(event, started=event.started and event.started + by, changed=event.changed and event.changed + by)


def _after(job: LogEvent, number: int, title: str, body: str) -> LogEvent:
    """Return a job's state after an event; events that don't concern the state change nothing."""
    change = EVENTS.get(number)
    return change(job, title, body) if change else job


def _read_submitted(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, status="waits")


def _began(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, status="runs", starts=job.starts + 1, started=job.changed, busy="", reason="", back=False)


def _came_back(job: LogEvent, title: str, body: str) -> LogEvent:
    """Handle an eviction, a failed shadow or a lost node; several of these may follow each other for the same cause."""
    reason = REASON.search(body)
    words = reason[1] if reason else job.reason or _first(body)
    return replace(job, status="waits", reason=words, busy="", back=True)


def _read_ended(job: LogEvent, title: str, body: str) -> LogEvent:
    code, signal = RETURNED.search(body), SIGNALLED.search(body)
    spent, memory = SPENT.search(body), MEMORY.search(body)
    units = (86400, 3600, 60, 1) * 2
    return replace(
        job,
        status="exited",
        busy="",
        code=int(code[1]) if code else None,
        signal=int(signal[1]) if signal else None,
        cpu=float(sum(unit * int(word) for unit, word in zip(units, spent.groups(), strict=True))) if spent else 0.0,
        memory=max(job.memory, int(memory[1]) * MIB if memory else 0),
    )


def _read_measure(job: LogEvent, title: str, body: str) -> LogEvent:
    used = USED.search(body)
    return replace(job, memory=max(job.memory, int(used[1]) * MIB)) if used else job


def _read_removed(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, status="removed", busy="", reason=_first(body))


def _read_held(job: LogEvent, title: str, body: str) -> LogEvent:
    codes = HELD.search(body)
    hold, detail = (int(codes[1]), int(codes[2])) if codes else (0, 0)
    return replace(job, status="held", busy="", reason=_first(body), hold=hold, detail=detail)


def _first(body: str) -> str:
    return next((line.strip() for line in body.split("\n") if line.strip()), "")


def _note_release(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, status="waits", reason="", hold=0, detail=0)


def _note_suspension(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, status="suspended")


def _note_resume(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, status="runs")


def _read_lost(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, busy="lost", reason=_first(body))


def _read_found(job: LogEvent, title: str, body: str) -> LogEvent:
    return replace(job, busy="", reason="")


def _moving(job: LogEvent, title: str, body: str) -> LogEvent:
    started = title.startswith("Started")
    way = "input" if "input" in title else "output"
    return replace(job, busy=way if started else "")


EVENTS = {
    0: _read_submitted,
    1: _began,
    4: _came_back,
    5: _read_ended,
    6: _read_measure,
    7: _came_back,
    9: _read_removed,
    10: _note_suspension,
    11: _note_resume,
    12: _read_held,
    13: _note_release,
    22: _read_lost,
    23: _read_found,
    24: _came_back,
    40: _moving,
}
