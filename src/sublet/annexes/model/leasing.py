"""A resource request before it is submitted: every line, with its source, its flag and the findings about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from sublet.annexes.model.annex import Details, Line, fill_details
from sublet.booking.model.amounts import duration_text, memory_text
from sublet.booking.model.scheduler import NOTHING_ASKED, scheduler_specs
from sublet.booking.model.shape import WITHOUT_DISK
from sublet.kernel.texts import describe_duration
from sublet.systems.model.allocation import Cost, cost_of
from sublet.systems.model.refusals import check, queue_for
from sublet.systems.model.system import Queue, System
from sublet.systems.model.wish import State, SystemFinding, Wish

YOU = "you"
DEFAULT = "default"
DEFAULTS = Details(nodes=1, lifetime=timedelta(hours=1), idle=timedelta(minutes=5))
SHORTEST = timedelta(minutes=1)
# The lines of a resource request, and the text of each that has no value.
LINES = {
    "system": "",
    "queue": "whichever fits",
    "project": "none",
    "nodes": "",
    "cores": "not said",
    "memory": "what the queue gives",
    "gpus": "none",
    "slots": "one, cut up as jobs need",
    "lifetime": "",
    "idle": "",
    "carry": "as the pilot finds out: direct, else spool",
}
OF_A_QUEUE: dict[str, Any] = {**dict.fromkeys(WITHOUT_DISK), "slots": None}  # have no meaning in another queue
OF_A_SYSTEM: dict[str, Any] = {
    "system": "",
    "queue": "",
    "project": "",
    "scheduler": NOTHING_ASKED,
    **OF_A_QUEUE,
}  # have no meaning on another system
_SAME = {"time": "lifetime"}  # names in a system check that differ from the fields of a lease


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One line of a resource request, and the system's finding about it."""

    field: str
    value: str
    source: str  # "you", "template NAME", "last time: example#2", "default"
    flag: str
    state: State = "ok"
    limit: str = ""
    message: str = ""
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """A complete resource request."""

    details: Details
    rows: tuple[RequestRow, ...]
    cost: Cost

    @property
    def refused(self) -> bool:
        """Whether any line of the request would be refused."""
        return any(row.state == "error" for row in self.rows)


Sources = Sequence[tuple[str, Details]]


def system_of(sources: Sources) -> str:
    """Return the system of the first source that names one."""
    return next((details.system for _, details in sources if details.system), "")


def plan(sources: Sources, system: System, *, today: date | None = None, jobs: int = 1) -> LeasePlan:
    """Combine sources into a request to a system; the first value of a line wins. `jobs` counts all leases there."""
    own = Details(system=system.name, queue=system.queue, project=system.project)
    suited = _drop_unsuited(sources, system.name)
    details, lines = fill_details([*suited, (f"how {system.name} was added", own), (DEFAULT, DEFAULTS)])
    wish = _wish(details, jobs)
    queue = queue_for(system, wish)
    details, lines = _with_cores(details, lines, queue)
    findings = {
        _SAME.get(check_result.field, check_result.field): check_result
        for check_result in check(system, _wish(details, jobs), today)
    }
    rows = [_row(field, details, lines, findings.pop(field, None)) for field in LINES]
    rows += [_make_asked_row(name, details, lines, findings.pop(name, None)) for name in details.scheduler.list_asked()]
    rows += [_other(finding) for finding in findings.values() if finding.state in ("error", "warning")]
    return LeasePlan(
        details, tuple(_own_checks(rows, details, queue)), cost_of(details, queue, details.lifetime or SHORTEST)
    )


def queue_of(details: Details, system: System) -> Queue | None:
    """Return the queue of a lease, as far as it is known."""
    return system.find_queue(details.queue) or queue_for(system, _wish(details, 1))


def _drop_unsuited(sources: Sources, system: str) -> list[tuple[str, Details]]:
    """Return the part of each source that applies to this system, and to the queue that the first of them names."""
    here = [
        (source, details if details.system in ("", system) else replace(details, **OF_A_SYSTEM))
        for source, details in sources
    ]
    queue = next((details.queue for _, details in here if details.queue), "")
    return [
        (source, details if details.queue in ("", queue) else replace(details, **OF_A_QUEUE))
        for source, details in here
    ]


def _wish(details: Details, jobs: int) -> Wish:
    asked = details.scheduler
    words = replace(asked, constraint="").words()
    return Wish(
        queue=details.queue,
        project=details.project,
        constraint=asked.constraint,
        options=tuple(f"--{name}={value}" if value else f"--{name}" for name, value in words),
        **{name: getattr(details, name) for name in ("nodes", *WITHOUT_DISK)},
        time=details.lifetime,
        time_flag="--lifetime",
        jobs=jobs,
    )


def _with_cores(details: Details, lines: tuple[Line, ...], queue: Queue | None) -> tuple[Details, tuple[Line, ...]]:
    """Fill in unspecified cores: all of a whole node, or one of a single node; of several shared nodes none."""
    if details.cores is not None:
        return details, lines
    cores, source = (1, DEFAULT) if details.nodes == 1 else (None, "")
    if queue and queue.sharing == "whole":
        cores, source = (queue.nodes[0].cores if queue.nodes else None), f"all: {queue.name} gives whole nodes"
    if cores is None:
        return details, lines
    return replace(details, cores=cores), (*lines, Line("cores", cores, source))


def _row(field: str, details: Details, lines: Sequence[Line], finding: SystemFinding | None) -> RequestRow:
    value = getattr(details, field)
    source = next((line.source for line in lines if line.name == field), DEFAULT)
    return _with_finding(RequestRow(field, text_of(field, value), source, f"--{field}"), finding)


def _make_asked_row(name: str, details: Details, lines: Sequence[Line], finding: SystemFinding | None) -> RequestRow:
    """Return the row of a scheduler option, which exists only if the option was given."""
    source = next((line.source for line in lines if line.name == name), DEFAULT)
    value = describe_option(getattr(details.scheduler, name))
    return _with_finding(RequestRow(name, value, source, scheduler_specs()[name].flag_name), finding)


def describe_option(value: Any) -> str:
    """Format a scheduler option's value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _with_finding(row: RequestRow, finding: SystemFinding | None) -> RequestRow:
    if finding is None:
        return row
    return replace(row, state=finding.state, limit=finding.limit, message=finding.message, nearest=finding.nearest)


def _other(finding: SystemFinding) -> RequestRow:
    """Return a row for a finding that belongs to no line, with the flag or file that changes it."""
    flags = {"jobs": "", "system": "--system", "constraint": "--constraint", "option": "--option"}
    flag = flags.get(finding.field, "the system's file")
    return RequestRow(
        finding.field, finding.wanted, "", flag, finding.state, finding.limit, finding.message, finding.nearest
    )


def _own_checks(rows: Sequence[RequestRow], details: Details, queue: Queue | None) -> Iterator[RequestRow]:
    """Yield the rows, with added findings about values that no system would refuse but that make no sense."""
    whole = queue is not None and queue.sharing == "whole"
    lifetime, idle = details.lifetime or SHORTEST, details.idle or SHORTEST
    for row in rows:
        if row.field == "cores" and details.cores is None and not whole:
            message = row.message or f"{details.nodes} nodes alone don't say how many cores of each."
            yield replace(row, state="error", message=message, nearest=row.nearest or "--cores N")
        elif row.field == "slots" and details.slots:
            yield _check_slots(row, details)
        elif row.field == "lifetime" and lifetime < SHORTEST:
            message = f"A lease lasts {describe_duration(SHORTEST)} at least."
            nearest = f"--lifetime {duration_text(SHORTEST)}"
            yield replace(row, state="error", message=message, nearest=nearest)
        elif row.field == "idle" and idle > lifetime:
            message = "It would never be idle for so long: its lifetime ends before."
            yield replace(row, state="warning", message=message, nearest=f"--idle {duration_text(lifetime)}, or less")
        else:
            yield row


def _check_slots(row: RequestRow, details: Details) -> RequestRow:
    """Check the number of slots: each needs a core, and cores or GPUs that can't be divided equally stay unused."""
    slots = details.slots or 1
    if details.cores is not None and slots > details.cores:
        message = f"{slots} slots need a core each, and a node has {details.cores}."
        return replace(row, state="error", message=message, nearest=f"--slots {details.cores}, or fewer")
    left = {name: (getattr(details, name) or 0) % slots for name in ("cores", "gpus")}
    unused = [f"{count} of its {getattr(details, name)} {name}" for name, count in left.items() if count]
    if not unused:
        return row
    message = f"Of each node {' and '.join(unused)} would be in no slot: slots are of equal size."
    return replace(row, state="warning", message=message)


def text_of(field: str, value: object) -> str:
    """Format the value of a line for people."""
    if value in ("", None):
        return LINES[field]
    if isinstance(value, timedelta):
        return describe_duration(value)
    return memory_text(value) if field == "memory" and isinstance(value, int) else str(value)


def type_value(field: str, value: object) -> str:
    """Format the value of a line as it is typed."""
    return duration_text(value) if isinstance(value, timedelta) else text_of(field, value)
