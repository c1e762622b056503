"""Readers for Grid Engine's jobs: qstat while they are queued or running, qacct when they have ended."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from sublet.booking.model.offer import Take
from sublet.platforms.batch.states import BY_OTHERS, QueueRow, part_of
from sublet.platforms.gridengine.readers import parse, read_length
from sublet.platforms.gridengine.states import HOLD, read_failure, read_letters

MARK = "s-"  # before a session's key: names can't begin with a digit
TIMES = ("%Y-%m-%dT%H:%M:%S", "%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S.%f", "%m/%d/%Y %H:%M:%S")
HELD_BY_OTHERS = re.compile(r"<!-- held by others: (\d+) -->")
A_DAY = timedelta(days=1)  # for a job without a time limit


def moment(text: str) -> datetime | None:
    """Read a time as one of its commands prints it with TZ=UTC; None if it isn't one."""
    plain = re.sub(r"\s+", " ", text.strip())
    for form in TIMES:
        try:
            return datetime.strptime(plain[:26], form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def read_queue(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `qstat -xml` by session key, those of an array as KEY/N; raise ValueError if it isn't that.

    After it, comments name the jobs that others hold.
    """
    rows: dict[str, QueueRow] = {}
    answer = parse(text)
    if answer.tag != "job_info":
        raise ValueError(f"it is no answer of qstat: {text[:80]!r}")
    held = set(HELD_BY_OTHERS.findall(text))
    for job in answer.iter("job_list"):
        name = job.findtext("JB_name", "")
        if name.startswith(MARK):
            row = _read_row(job, name.removeprefix(MARK))
            if row.reason == HOLD and row.id in held:
                row = replace(row, reason=BY_OTHERS)
            rows |= _spread(row, job.findtext("tasks", ""))
    return rows


def _read_row(job: ElementTree.Element, key: str) -> QueueRow:
    state = read_letters(job.findtext("state", ""))
    queue, _, host = job.findtext("queue_name", "").partition("@")
    return QueueRow(
        id=job.findtext("JB_job_number", ""),
        name=key,
        state=state,
        reason=HOLD if state == HOLD else "",
        start=moment(job.findtext("JAT_start_time", "")),
        queue=queue,
        nodes=host,
    )


def _spread(row: QueueRow, tasks: str) -> Iterator[tuple[str, QueueRow]]:
    """Yield a row for each task that a row covers, counted from 0; the row itself if it isn't an array."""
    if not tasks:
        yield row.name, row
        return
    for word in tasks.split(","):
        span = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", word.strip())
        if span:
            for number in range(int(span[1]), int(span[2] or span[1]) + 1, int(span[3] or 1)):
                yield part_of(row.name, number - 1), replace(row, id=f"{row.id}.{number}", array=row.id)


def read_past(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `qacct -j` by session key, those of an array as KEY/N."""
    rows: dict[str, QueueRow] = {}
    for block in re.split(r"^=+\s*$", text, flags=re.MULTILINE):
        values = dict(re.findall(r"^(\w+)\s+(.*?)\s*$", block, flags=re.MULTILINE))
        if values.get("jobname", "").startswith(MARK):
            rows |= _spread(*_read_past_row(values))
    return rows


def _read_past_row(values: dict[str, str]) -> tuple[QueueRow, str]:
    failed = int(re.match(r"\d*", values.get("failed", "0"))[0] or 0)  # type: ignore[index]  # it always matches
    status = int(re.match(r"\d*", values.get("exit_status", "0"))[0] or 0)  # type: ignore[index]
    start, end = moment(values.get("start_time", "")), moment(values.get("end_time", ""))
    limit = re.search(r"\bh_rt=(\d+)", values.get("category", ""))
    is_early = bool(limit and start and end and end - start < timedelta(seconds=int(limit[1]) - 5))
    row = QueueRow(
        id=values.get("jobnumber", ""),
        name=values["jobname"].removeprefix(MARK),
        state=read_failure(failed, is_early=is_early),
        start=start,
        end=end,
        queue=values.get("qname", ""),
        nodes=values.get("hostname", ""),
        code=status if not failed else None,
    )
    tasks = values.get("taskid", "undefined")
    return row, tasks if tasks.isdecimal() else ""


def read_reservations(text: str) -> tuple[Take, ...]:
    """Read what everybody's reservations have, from several answers of `qrstat -ar`."""
    whole = parse(f"<all>{text}</all>")
    takes = []
    for each in whole.iter("ar_summary"):
        start, end = moment(each.findtext("start_time", "")), moment(each.findtext("end_time", ""))
        for granted in each.iter("granted_slots"):
            host = granted.get("queue_instance", "").partition("@")[2]
            if start and end:
                takes.append(Take(host, start, end, cores=int(granted.get("slots", "0"))))
    return tuple(takes)


def read_reservation_names(text: str) -> frozenset[str]:
    """Read the names of sessions' reservations, from several answers of `qrstat -ar`: their jobs have the same."""
    names = (each.findtext("name", "") for each in parse(f"<all>{text}</all>").iter("ar_summary"))
    return frozenset(name for name in names if name.startswith(MARK))


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """What anybody's job has, or waits for."""

    slots: int
    host: str  # empty while it is queued
    start: datetime | None
    time: timedelta


def read_jobs_of_all(text: str, reserved: Container[str] = ()) -> tuple[PlannedJob, ...]:
    """Read all jobs in `qstat -r -xml -u *`: running ones first, then queued ones, by priority.

    Those with the name of a reservation have its nodes, and no others.
    """
    listed = [job for job in parse(text).iter("job_list") if job.findtext("JB_name", "") not in reserved]
    jobs = [_read_planned(job) for job in listed]
    return tuple(sorted((job for job in jobs if job), key=lambda job: not job.host))


def _read_planned(job: ElementTree.Element) -> PlannedJob | None:
    state = read_letters(job.findtext("state", ""))
    if state in ("error", HOLD):
        return None
    limits = [each.text or "" for each in job.findall("hard_request") if each.get("name") == "h_rt"]
    slots = int(job.findtext("slots", "1") or 1)
    tasks = sum(1 for _ in _spread(QueueRow("", "", ""), job.findtext("tasks", "") if state == "waits" else ""))
    host = job.findtext("queue_name", "").partition("@")[2]
    time = read_length(limits[0]) if limits else None
    return PlannedJob(slots * max(1, tasks), host, moment(job.findtext("JAT_start_time", "")), time or A_DAY)
