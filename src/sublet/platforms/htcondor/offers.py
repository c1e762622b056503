"""The offers of an annex's or a pool's slots: which nodes there are, until when, and when there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sublet.annexes.model.annex import (
    JOB_BOOKED,
    JOB_TARGET,
    JOB_TIME,
    SLOT_ANNEX,
    SLOT_DRAINING,
    SLOT_END,
    SLOT_SESSIONS,
    SLOT_TOOLS,
)
from sublet.booking.model.amounts import duration_iso
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.calendar import Slot as Found
from sublet.booking.model.limits import LIMIT, check_limits
from sublet.booking.model.offer import Answer, Node, Offer, Predicted, Reason, Take, take_of
from sublet.booking.model.request import Request, Window
from sublet.booking.model.shape import Shape
from sublet.booking.model.windows import admits, last_start, list_named_windows, windows_of
from sublet.kernel.texts import describe_duration
from sublet.platforms.htcondor.commands import IDLE, RUNNING, SUSPENDED, to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.slots import to_slots
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.platforms.port import Survey
from sublet.reach.port import Command

KIB, MIB = 1 << 10, 1 << 20
FRESH = timedelta(seconds=5)  # how long a survey is good for: nodes come and go
SILENT = timedelta(minutes=1)  # a slot that hasn't reported for this long doesn't count
HORIZON = timedelta(days=400)
HEARS = timedelta(seconds=15)  # time for a node to learn that it is for sessions only
FOR_EVER = timedelta(days=3650)  # for slots without an end time
WAITING = 200  # the most queued jobs that are taken into account
UNREACHED = "what listens on a node can't be reached from here"
BASIC = {"sh": "/bin/sh"}  # what every node has
SLOT = (
    *("Name", "SlotType", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotGPUs", "TotalSlotDisk"),
    *("Cpus", "Memory", "GPUs", "Disk"),
    *("LastHeardFrom", SLOT_END, SLOT_SESSIONS, SLOT_TOOLS),
)
JOB = (
    "JobStatus",
    "RequestCpus",
    "RequestMemory",
    "RequestGPUs",
    "RemoteHost",
    "JobCurrentStartDate",
    JOB_TIME,
    JOB_BOOKED,
)


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """One node, its end time, and the tools on it."""

    node: Node
    end: datetime
    tools: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class View:
    """The slots and jobs at the access point, as of a time."""

    as_of: datetime
    slots: tuple[Ad, ...] = ()
    jobs: tuple[Ad, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """The platform or annex that makes the offers."""

    platform: str
    title: str = ""  # the annex's name
    parts: int = 1  # the most parts of a bag
    coming: str = ""  # which nodes are still expected

    @property
    def called(self) -> str:
        """Its name at the start of a sentence."""
        return f"The annex {self.title}" if self.title else self.platform


def to_see(tools: Tools, annex: str) -> Command[list[Ad]]:
    """List the slots of an annex; without one, those of no annex."""
    whose = f"{SLOT_ANNEX} =?= {quote_string(annex)}" if annex else f"{SLOT_ANNEX} =?= undefined"
    return to_slots(tools, f'{whose} && SlotType =!= "Dynamic" && {SLOT_DRAINING} =!= True', SLOT)


def to_see_jobs(tools: Tools, annex: str) -> Command[list[Ad]]:
    """List the running jobs, and the queued ones that are for this annex."""
    target = f"{JOB_TARGET} =?= {quote_string(annex) if annex else 'undefined'}"
    return to_queue(
        tools, f"JobStatus == {RUNNING} || JobStatus == {SUSPENDED} || (JobStatus == {IDLE} && {target})", JOB
    )


def places(view: View) -> list[SlotPlace]:
    """Return the nodes that reported recently."""
    listed = []
    for ad in view.slots:
        heard = ad.get("LastHeardFrom")
        if isinstance(heard, int) and view.as_of - _moment(heard) > SILENT:
            continue
        end = ad.get(SLOT_END)
        name = str(ad.get("Name", ""))
        node = Node(
            name if ad.get("SlotType") == "Static" else _node_of(name),
            int(ad.get("TotalSlotCpus") or ad.get("Cpus") or 0),
            int(ad.get("TotalSlotMemory") or ad.get("Memory") or 0) * MIB,
            int(ad.get("TotalSlotGPUs") or ad.get("GPUs") or 0),
            int(ad.get("TotalSlotDisk") or ad.get("Disk") or 0) * KIB,
        )
        until = _moment(end) if isinstance(end, int) else view.as_of + FOR_EVER
        listed.append(SlotPlace(node, until, read_tools(str(ad.get(SLOT_TOOLS) or ""))))
    return sorted(listed, key=lambda place: place.node.name)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _node_of(slot: str) -> str:
    """Return the node of a slot such as slot1_2@c1.example."""
    return slot.partition("@")[2] or slot


def read_tools(text: str) -> dict[str, str]:
    """Read a slot's description of its node's tools."""
    pairs = (word.partition("=") for word in text.split())
    return BASIC | {name: path for name, mark, path in pairs if mark and name}


def survey_of(view: View, called: str) -> Survey:
    """Return the survey for the service; its tools are those that every node has."""
    there = places(view)
    shared = dict(there[0].tools) if there else {}
    for place in there[1:]:
        shared = {name: path for name, path in shared.items() if place.tools.get(name) == path}
    notes = [f"{place.node.name} ends at {place.end:%Y-%m-%d %H:%M} UTC" for place in there]
    if not there:
        notes = [f"{called} has no node now"]
    nodes = tuple(place.node for place in there)
    return Survey(view.as_of, nodes, tools=shared, notes=tuple(notes), good_for=FRESH)


def answer(view: View, request: Request, way: str, now: datetime, seen: Seen) -> Answer:
    """Return an offer at the earliest time that there is room, and one in each other window; or why there is none."""
    there = places(view)
    if not there:
        why = f"{seen.called} has no node now{f'; {seen.coming}' if seen.coming else ''}."
        hint = f"sublet annex add {seen.title}" if seen.title else ""
        return _no(Reason("urn:not-supported", "platform", why, nearest=hint), seen)
    calendar = Calendar([place.node for place in there])
    reasons = [*unfit(request, seen), *_too_long(request, there, now, seen)] or check_limits(
        request, calendar, platform=seen.called, pools={}, metrics=(), longest=None
    )
    if reasons:
        return Answer(reasons=tuple(replace(reason, platform=seen.platform) for reason in reasons))
    fill(calendar, there, view, now)
    shape = request.compute.least
    asked = windows_of(request, now, HORIZON) if request.windows or request.recurring else ()
    if (request.windows or request.recurring) and not asked:
        return _no(Reason("urn:window-passed", "schedule", "The windows that were asked for are over."), seen)
    end = max(place.end for place in there)
    earliest = calendar.earliest(shape, 1, request.duration, asked or [Window(now, max(now, end - request.duration))])
    if earliest is None:
        return _no(_too_late(request, there, now, seen), seen)
    window = next((each for each in asked if admits(each, earliest.start)), None)
    starts = [(earliest, window), *_in_other_windows(request, calendar, shape, earliest.start, now)]
    return Answer(offers=tuple(_offer(request, *start, shape, way, now, view, seen) for start in starts))


def _in_other_windows(
    request: Request, calendar: Calendar, shape: Shape, first: datetime, now: datetime
) -> list[tuple[Found, Window]]:
    """Return a start in each named window that contains none of the other starts."""
    found: list[tuple[Found, Window]] = []
    starts = [first]
    for window in list_named_windows(request, now, HORIZON):
        if any(admits(window, start) for start in starts):
            continue
        if other := calendar.earliest(shape, 1, request.duration, [window]):
            found.append((other, window))
            starts.append(other.start)
    return found


def _no(reason: Reason, seen: Seen) -> Answer:
    return Answer(reasons=(replace(reason, platform=seen.platform),))


def unfit(request: Request, seen: Seen) -> Iterator[Reason]:
    """Yield the reasons for which the request could never run here, whatever the calendar says."""
    executable = request.executable
    ports = ((executable.fields.get("network") or {}) if executable else {}).get("ports") or ()
    if executable and (executable.kind == "interactive" or any(port.get("access") for port in ports)):
        yield Reason("urn:not-supported", "executable.kind", f"{seen.called}: {UNREACHED}.")
    if (count := request.compute.nodes.min) > 1:
        why = f"{seen.called} runs each session on one node, and {count} were asked for."
        yield Reason(LIMIT, "compute.nodes.min", why, str(count), "1", "1")


def _too_long(request: Request, there: Sequence[SlotPlace], now: datetime, seen: Seen) -> Iterator[Reason]:
    left = max(place.end for place in there) - now
    if request.duration > left:
        long, most = describe_duration(request.duration), describe_duration(_minutes(left))
        why = f"{seen.called} is there for {most} more, and {long} was asked for."
        yield Reason(LIMIT, "schedule.requested.duration", why, long, most, duration_iso(_minutes(left)))


def _minutes(length: timedelta) -> timedelta:
    """Round down to whole minutes, at least 0."""
    return max(timedelta(0), length // timedelta(minutes=1) * timedelta(minutes=1))


def _too_late(request: Request, there: Sequence[SlotPlace], now: datetime, seen: Seen) -> Reason:
    """Return the reason if there is no room before the nodes end, or in the windows."""
    long, end = describe_duration(request.duration), max(place.end for place in there)
    asked = " in the windows that were asked for" if request.windows or request.recurring else ""
    why = f"{seen.called} is busy, and ends at {end:%Y-%m-%d %H:%M} UTC: {long} is not free before that{asked}."
    return Reason("urn:window-passed", "schedule", why, nearest="a shorter time")


def list_taken(view: View) -> tuple[Take, ...]:
    """Return what can't be booked: the nodes' ends, unbooked jobs, and nodes not yet announced as bookable."""
    there, now = places(view), view.as_of
    announced = {_node_of(str(ad.get("Name", ""))) for ad in view.slots if ad.get(SLOT_SESSIONS) is True}
    ends = {place.node.name: place.end for place in there}
    taken = [take_of(place.node.name, place.end, place.end + HORIZON, place.node) for place in there]
    taken += [
        take_of(node.name, now, now + HEARS, node)
        for node in (place.node for place in there)
        if _node_of(node.name) not in announced
    ]
    for ad in view.jobs:
        node, shape = _find_taken(ad, there)
        if ad.get(JOB_BOOKED) is True or ad.get("JobStatus") == IDLE or node not in ends:
            continue
        until = min(ends[node], _until(ad, now) or ends[node])
        since = min(_moment(_whole(ad, "JobCurrentStartDate", round(now.timestamp()))), until)
        if since < until:
            taken.append(take_of(node, since, until, shape))
    return tuple(taken)


def fill(calendar: Calendar, there: Sequence[SlotPlace], view: View, now: datetime) -> None:
    """Enter what is known of the nodes into a calendar: their ends, running jobs, and the queued jobs ahead."""
    ends = {place.node.name: place.end for place in there}
    for place in there:
        node, since = place.node, max(now, place.end)
        calendar.put(f"end {node.name}", [take_of(node.name, since, since + HORIZON, node)])
    waiting = []
    for number, ad in enumerate(view.jobs):
        node_name, shape = _find_taken(ad, there)
        if ad.get("JobStatus") == IDLE:
            waiting.append((shape, _time(ad)))
        elif node_name in ends:
            until = min(ends[node_name], _until(ad, now) or ends[node_name])
            if until > now:
                take = take_of(node_name, now, until, shape)
                calendar.put(f"job {number}", [take])
    for number, (shape, time) in enumerate(waiting[:WAITING]):
        window = Window(now, max(ends.values()))
        if slot := calendar.earliest(shape, 1, time, [window]):
            take = take_of(slot.nodes[0], slot.start, slot.start + time, shape)
            calendar.put(f"waiting {number}", [take])


def _find_taken(ad: Ad, there: Sequence[SlotPlace]) -> tuple[str, Shape]:
    """Return where a job runs and what it takes there; a static slot is taken as a whole."""
    host = str(ad.get("RemoteHost") or "")
    slot = next((place.node for place in there if place.node.name == host), None)
    return (host, Shape(slot.cores, slot.memory, slot.gpus)) if slot else (_node_of(host), _shape(ad))


def _shape(ad: Ad) -> Shape:
    return Shape(_whole(ad, "RequestCpus", 1), _whole(ad, "RequestMemory", 1) * MIB, _whole(ad, "RequestGPUs", 0))


def _whole(ad: Mapping[str, Any], name: str, default: int) -> int:
    """Return a number of an ad; an expression isn't evaluated, but replaced by the default."""
    value = ad.get(name)
    return int(value) if isinstance(value, (int, float)) else default


def _time(ad: Ad) -> timedelta:
    """Return how long a job may take: an hour, if it doesn't say."""
    return timedelta(seconds=_whole(ad, JOB_TIME, 3600))


def _until(ad: Ad, now: datetime) -> datetime | None:
    """Return when a running job ends at the latest; None if it doesn't say."""
    if not isinstance(ad.get(JOB_TIME), int):
        return None
    return _moment(_whole(ad, "JobCurrentStartDate", round(now.timestamp()))) + _time(ad)


def _offer(
    request: Request,
    slot: Found,
    window: Window | None,
    shape: Shape,
    way: str,
    now: datetime,
    view: View,
    seen: Seen,
) -> Offer:
    start = max(slot.start, now)
    room = sum(_times(place.node, shape) for place in places(view))
    return Offer(
        platform=seen.platform,
        way=way,
        start=start,
        latest_start=max(start, last_start(window)) if window else start,
        duration=request.duration,
        nodes=(),
        shape=shape,
        terms=Predicted(p10=start, p50=start, p90=start, samples=0, as_of=view.as_of),
        why="a slot is free now" if start <= now else "when a slot comes free",
        queue="" if start <= now else seen.title or seen.platform,  # a slot that is free now needs no track record
        begin=window.start if window and window.start > now else None,
        parts=max(1, min(request.parts, seen.parts, room)),
    )


def _times(node: Node, shape: Shape) -> int:
    """Return how often a shape fits on a node."""
    pairs = ((node.cores, shape.cores), (node.memory, shape.memory), (node.gpus, shape.gpus), (node.disk, shape.disk))
    return min(has // wants for has, wants in pairs if wants)
