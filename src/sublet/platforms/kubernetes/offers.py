"""When a namespace has room for a request: by its quota, the visible nodes, and the pods that already wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.booking.model.calendar import Calendar, Slot
from sublet.booking.model.limits import LIMIT, NOT_SUPPORTED, check_limits
from sublet.booking.model.offer import Answer, Node, Offer, Predicted, Reason, Take, take_of
from sublet.booking.model.request import Request, Window
from sublet.booking.model.shape import Shape
from sublet.booking.model.windows import admits, last_start, list_named_windows, windows_of
from sublet.platforms.kubernetes.choosing import ANY_NODE, NodeChoice
from sublet.platforms.kubernetes.survey import ClusterView, has_indexed_jobs, limit_nodes

HORIZON = timedelta(days=400)
UNKNOWN_END = timedelta(hours=1)  # the assumed remaining time of a pod without a known end
QUOTA = "quota"
TRIES = 20  # how often a start is moved until nodes and quota agree
WAITING = 200  # the most waiting pods that are taken into account
FREE, LATER = "there is room now", "when there is room in the namespace"


@dataclass(frozen=True, slots=True)
class KubernetesOffers:
    """The platform that makes the offers, and what its settings add."""

    platform: str
    stated: Shape | None = None
    longest: timedelta | None = None
    choice: NodeChoice = ANY_NODE
    version: str = ""  # of the server, if known

    def answer(self, view: ClusterView, request: Request, way: str, now: datetime) -> Answer:
        """Return an offer at the earliest time that there is room, and one in each other window.

        Or why there is none.
        """
        nodes = divide(limit_nodes(view, self.stated), request.compute.nodes.min, is_whole=view.sees_nodes)
        reasons = self._find_reasons(view, request, nodes)
        if not reasons:
            nodes = self.choice.choose(view, request, nodes)
            reasons = self._find_excess(request, nodes) or [*self._find_short_quota(view, request)]
        if reasons:
            return Answer(reasons=tuple(replace(reason, platform=self.platform) for reason in reasons))
        calendars = _fill(view, nodes, now)
        asked = windows_of(request, now, HORIZON) if request.windows or request.recurring else ()
        if (request.windows or request.recurring) and not asked:
            return self._refuse("urn:window-passed", "schedule", "The windows that were asked for are over.")
        first = max(now, request.not_before or now)
        windows = asked or [Window(first, first + HORIZON)]
        earliest = _find_start(calendars, request, windows)
        if earliest is None:
            why = f"{self.platform} has no room in the windows that were asked for."
            return self._refuse("urn:window-passed", "schedule", why)
        starts = [earliest, *_in_other_windows(calendars, request, earliest, now)]
        return Answer(offers=tuple(self._offer(view, request, start, way, now) for start in starts))

    def _find_reasons(self, view: ClusterView, request: Request, nodes: Sequence[Node]) -> list[Reason]:
        if not nodes:
            return [Reason("urn:not-supported", "platform", describe_nothing(view, self.platform))]
        seen = replace(self, version=view.version)
        reasons = [*seen.unfit(request), *self.find_closed_ports(view, request)]
        return reasons or [*self.choice.find_missing(view, request)]

    def _find_excess(self, request: Request, nodes: Sequence[Node]) -> list[Reason]:
        calendar = Calendar(nodes)
        return check_limits(request, calendar, platform=self.platform, pools={}, metrics=(), longest=self.longest)

    def unfit(self, request: Request) -> Iterator[Reason]:
        """Yield the reasons for which the request could never run here, whatever the calendar says."""
        yield from self.choice.unfit(request)
        yield from self._find_lack_of_nodes(request)

    def _find_lack_of_nodes(self, request: Request) -> Iterator[Reason]:
        """Yield why several nodes aren't possible: pods must be numbered, and each must start the program itself."""
        count = request.compute.nodes.min
        if count == 1:
            return
        if not has_indexed_jobs(self.version):
            why = (
                f"{self.platform} runs each session in one pod: it is Kubernetes {self.version}, and several need 1.22."
            )
            yield Reason(LIMIT, "compute.nodes.min", why, str(count), "1", "1")
        elif not request.is_for_each_node:
            why = f"{self.platform} runs {count} nodes as {count} pods, and no pod can start a program in another."
            yield Reason(NOT_SUPPORTED, "executable.each_node", why, "", "true", "each_node: true, or nodes: 1")

    def _find_short_quota(self, view: ClusterView, request: Request) -> Iterator[Reason]:
        """Yield the limits of the quota that all nodes together exceed, although each single node fits."""
        count, least = request.compute.nodes.min, request.compute.least
        for name in ("cores", "memory", "gpus", "disk") if view.quota and count > 1 else ():
            wanted, most = count * getattr(least, name), getattr(view.quota.most, name) if view.quota else 0
            if wanted > most:
                why = f"{self.platform}: the quota of {view.namespace} allows less {name} than {count} such nodes have."
                yield Reason(LIMIT, f"compute.{name}.min", why, str(wanted), str(most), str(most // count))

    def find_closed_ports(self, view: ClusterView, request: Request) -> Iterator[Reason]:
        """Yield why nobody could connect to the session, if someone is to."""
        executable = request.executable
        ports = ((executable.fields.get("network") or {}) if executable else {}).get("ports") or ()
        listens = executable and (executable.kind == "interactive" or any(port.get("access") for port in ports))
        if listens and "ports" in view.missing:
            why = f"{self.platform}: you may not create pods/portforward in the namespace {view.namespace}."
            yield Reason("urn:not-supported", "executable.kind", why)

    def _refuse(self, kind: str, field: str, why: str) -> Answer:
        return Answer(reasons=(Reason(kind, field, why, platform=self.platform),))

    def _offer(self, view: ClusterView, request: Request, slot: Slot, way: str, now: datetime) -> Offer:
        asked = windows_of(request, now, HORIZON) if request.windows or request.recurring else ()
        window = next((each for each in asked if admits(each, slot.start)), None)
        start = max(slot.start, now)
        return Offer(
            platform=self.platform,
            way=way,
            start=start,
            latest_start=max(start, last_start(window)) if window else start,
            duration=request.duration,
            nodes=(),
            shape=request.compute.least,
            count=request.compute.nodes.min,
            terms=Predicted(p10=start, p50=start, p90=start, samples=0, as_of=view.as_of),
            why=FREE if start <= now else LATER,
            queue="" if start <= now else view.namespace,  # what is free now needs no track record
            begin=window.start if window and window.start > now else None,
        )


def divide(nodes: Sequence[Node], count: int, *, is_whole: bool) -> Sequence[Node]:
    """Return the nodes; if none is visible and the quota stands for them, divide it into this many equal parts."""
    if is_whole or count == 1:
        return nodes
    return [
        Node(f"{node.name}/{number}", node.cores // count, node.memory // count, node.gpus // count, node.disk // count)
        for node in nodes
        for number in range(count)
    ]


def multiply(shape: Shape, count: int) -> Shape:
    """Return what this many nodes have together."""
    return Shape(shape.cores * count, shape.memory * count, shape.gpus * count, shape.disk * count)


def describe_nothing(view: ClusterView, platform: str) -> str:
    """Describe why there is nothing to offer."""
    if view.sees_nodes:
        return f"{platform} has no node that takes pods now."
    return (
        f"{platform} shows neither its nodes nor a quota of the namespace {view.namespace}: "
        f"say in its settings how many `cores` and how much `memory` a session may have."
    )


def _fill(view: ClusterView, nodes: Sequence[Node], now: datetime) -> list[Calendar]:
    """Return a calendar of the nodes, and one of the quota, with what is taken of each."""
    calendar = Calendar(nodes)
    if view.sees_nodes:
        for number, take in enumerate(list_takes(view, nodes, now)):
            calendar.put(f"pod {number}", [take])
        _put_waiting(calendar, view, now)
    calendars = [calendar]
    if view.quota:
        bounded = Calendar([replace(view.quota.most, name=QUOTA)])
        for number, take in enumerate(_list_quota_takes(view, now)):
            bounded.put(f"pod {number}", [take])
        calendars.append(bounded)
    return calendars


def list_takes(view: ClusterView, nodes: Sequence[Node], now: datetime, *, of_others: bool = False) -> Iterator[Take]:
    """Yield what pods take of the visible nodes; with `of_others`, only those that aren't ours."""
    known = {node.name: node for node in nodes}
    for use in view.uses:
        if use.node in known and not (of_others and use.is_ours):
            yield take_of(use.node, now, max(now, use.until or now + UNKNOWN_END) + timedelta(seconds=1), use.shape)


def _put_waiting(calendar: Calendar, view: ClusterView, now: datetime) -> None:
    """Enter waiting pods into the calendar first."""
    for number, use in enumerate([use for use in view.uses if not use.node][:WAITING]):
        if slot := calendar.earliest(use.shape, 1, UNKNOWN_END, [Window(now, now + HORIZON)]):
            calendar.put(f"waiting {number}", [take_of(slot.nodes[0], slot.start, slot.start + UNKNOWN_END, use.shape)])


def _list_quota_takes(view: ClusterView, now: datetime) -> Iterator[Take]:
    """Yield what is used of the quota: by sessions until they end, and the rest for an assumed time."""
    quota = view.quota
    if quota is None:
        return
    used = {name: getattr(quota.most, name) - getattr(quota.left, name) for name in ("cores", "memory", "gpus", "disk")}
    for use in (use for use in view.uses if use.until and use.until > now):
        size = Shape(*(min(used[name], getattr(use.shape, name)) for name in used))
        used = {name: used[name] - getattr(size, name) for name in used}
        yield take_of(QUOTA, now, use.until or now, size)
    yield take_of(QUOTA, now, now + UNKNOWN_END, Shape(**used))


def _find_start(calendars: Sequence[Calendar], request: Request, windows: Sequence[Window]) -> Slot | None:
    """Return the first start at which the nodes have room, and the quota has room for all nodes together."""
    shape, count, time = request.compute.least, request.compute.nodes.min, request.duration
    wanted = [(shape, count), (multiply(shape, count), 1)]
    for _ in range(TRIES):
        slots = [
            calendar.earliest(each, number, time, windows)
            for calendar, (each, number) in zip(calendars, wanted, strict=False)
        ]
        if None in slots:
            return None
        starts = [slot for slot in slots if slot]
        latest = max(starts, key=lambda slot: slot.start)
        if all(slot.start == latest.start for slot in starts):
            return replace(starts[0], start=latest.start)
        windows = [
            replace(window, start=max(window.start, latest.start))
            for window in windows
            if last_start(window) >= latest.start
        ]
        if not windows:
            return None
    return None


def _in_other_windows(calendars: Sequence[Calendar], request: Request, first: Slot, now: datetime) -> Iterator[Slot]:
    """Yield a start in each named window that contains none of the other starts."""
    starts = [first.start]
    for window in list_named_windows(request, now, HORIZON):
        if any(admits(window, start) for start in starts):
            continue
        if slot := _find_start(calendars, request, [window]):
            starts.append(slot.start)
            yield slot
