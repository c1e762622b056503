"""Which queues a request fits in, or why it doesn't, and the offer that follows from a scheduler's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from sublet.booking.model.amounts import duration_text, memory_text
from sublet.booking.model.choices import has_features
from sublet.booking.model.gpu_sorts import GpuSort, find_driver, sort_gpus
from sublet.booking.model.offer import Answer, Offer, Predicted, Reason
from sublet.booking.model.request import Request, Window
from sublet.booking.model.shape import Amounts, is_enough
from sublet.booking.model.windows import last_start, windows_of
from sublet.kernel.texts import count_text, describe_duration
from sublet.platforms.batch.site import SiteNode, SiteQueue

HORIZON = timedelta(days=400)
LIMIT = "urn:resource-limit"
BRACKETS = frozenset("()[]*")  # of a constraint that only the scheduler can interpret
UNREACHED = "it allows no connection that is shared, so that nothing can stay connected to a node of it"


class Placed(Protocol):
    """Amounts that are requested of a scheduler in a queue."""

    @property
    def queue(self) -> str:
        """The queue; empty if none is named."""

    @property
    def amounts(self) -> Amounts:
        """The requested amounts."""


@dataclass(frozen=True, slots=True)
class InQueue:
    """The plain implementation of `Placed`, for schedulers that are told nothing else before a job is submitted."""

    queue: str
    amounts: Amounts


def where(wish: Placed) -> str:
    """Return ` in QUEUE` for a message, or nothing if no queue is named."""
    return f" in {wish.queue}" if wish.queue else ""


def listens(request: Request) -> bool:
    """Whether someone is to connect to the session."""
    executable = request.executable
    ports = ((executable.fields.get("network") or {}) if executable else {}).get("ports") or ()
    return executable is not None and (executable.kind == "interactive" or any(port.get("access") for port in ports))


def find_closed(request: Request, platform: str, allows_interactive: bool, connects: bool) -> Reason | None:
    """Return why nobody could connect to the session; None if it is possible or isn't needed."""
    if not listens(request) or (allows_interactive and connects):
        return None
    why = UNREACHED if allows_interactive else "the site's own settings allow no interactive sessions"
    return Reason("urn:not-supported", "executable.kind", f"{platform}: {why}.", platform=platform)


def find_untyped(request: Request, nodes: Sequence[SiteNode], platform: str) -> Reason | None:
    """Return why GPUs of the requested type aren't available; None if they are or no type was requested."""
    wanted, field = request.scheduler.gpu_type, "gpu_type"
    if not wanted:
        return None
    if not request.compute.gpus.min:
        message = f"{platform}: a type of GPU was asked for, and no GPU."
        return Reason("urn:invalid-value", field, message, wanted, "", "gpus: 1", platform)
    types = sorted({name for node in nodes for name in node.gpu_types})
    if wanted in types:
        return None
    there = f"it has: {', '.join(types)}" if types else "it names no types of GPU"
    message = f"{platform} has no GPUs of the type {wanted}; {there}."
    return Reason("urn:not-supported", field, message, wanted, ", ".join(types), ", ".join(types), platform)


def of_type(nodes: Iterable[SiteNode], gpu_type: str) -> list[SiteNode]:
    """Return the nodes that have GPUs of a type, or all nodes if no type is named."""
    return [node for node in nodes if not gpu_type or gpu_type in node.gpu_types]


def state_gpus(answer: Answer, request: Request, nodes_of: Callable[[Offer], Iterable[SiteNode]]) -> Answer:
    """Add to each offer the sorts of GPU that its nodes may have."""
    if not request.compute.gpus.min:
        return answer
    offers = [replace(offer, gpu_sorts=list_gpus(nodes_of(offer), request)) for offer in answer.offers]
    return replace(answer, offers=tuple(offers))


def list_gpus(nodes: Iterable[SiteNode], request: Request) -> tuple[GpuSort, ...]:
    """Return the sorts of GPU of the nodes that could run the request."""
    asked, constraint = request.scheduler.gpu_type, request.scheduler.constraint
    able = [each for each in of_type(nodes, asked) if is_enough(each.node, request.compute.least)]
    if not BRACKETS & set(constraint):
        able = [each for each in able if has_features(constraint, each.features)]
    return sort_gpus(
        GpuSort(name, find_driver(each.features))
        for each in able
        for name in ((asked,) if asked else each.gpu_types or ("",))
    )


def _most(nodes: Iterable[SiteNode], of: Callable[[SiteNode], int], limit: int | None) -> int:
    most = max(map(of, nodes), default=0)
    return most if limit is None else min(most, limit)


def find_excess(request: Request, queue: SiteQueue, nodes: Sequence[SiteNode], platform: str) -> Reason | None:
    """Return the first limit of a queue that a request exceeds, or None."""
    wanted = request.compute
    where = f"The queue {queue.name} of {platform}" if queue.name else platform
    if not queue.up or not nodes:
        message = f"{where} takes no jobs now." if nodes else f"{where} has no nodes."
        return Reason("urn:not-supported", "platform", message, platform=platform)
    most_nodes = min(len(nodes), queue.max_nodes or len(nodes))
    threads = min(node.threads for node in nodes)
    cores = queue.max_cores // threads if queue.max_cores else None
    amounts: tuple[tuple[str, int, int, str], ...] = (
        ("nodes", wanted.nodes.min, most_nodes, "node"),
        ("cores", wanted.cores.min, _most(nodes, lambda n: n.node.cores, cores), "core"),
        ("memory", wanted.memory.min, _most(nodes, lambda n: n.node.memory, queue.max_memory), ""),
        ("gpus", wanted.gpus.min, _most(nodes, lambda n: n.node.gpus, None), "GPU"),
        ("disk", wanted.disk.min, _most(nodes, lambda n: n.node.disk, None), ""),
    )
    for what, least, limit, noun in amounts:
        if least > limit:
            text = str if noun else memory_text
            most = count_text(limit, noun) if noun else f"{text(limit)} {what}"
            each, verb = "" if what == "nodes" else " on a node", "was" if least == 1 else "were"
            message = f"{where} gives at most {most}{each}, and {text(least)} {verb} asked for."
            return Reason(LIMIT, f"compute.{what}.min", message, text(least), text(limit), text(limit), platform)
    if wanted.nodes.max < queue.min_nodes:
        verb = "was" if wanted.nodes.max == 1 else "were"
        message = f"{where} takes jobs of {queue.min_nodes} nodes or more, and {wanted.nodes.max} {verb} asked for."
        nearest = str(queue.min_nodes)
        return Reason(LIMIT, "compute.nodes.max", message, str(wanted.nodes.max), nearest, nearest, platform)
    able = sum(_holds(node, request) for node in nodes)
    if not able:
        message = f"{where} has no node with all that was asked for of one node together."
        return Reason(LIMIT, "compute", message, platform=platform)
    if able < wanted.nodes.min:
        count = "one node" if able == 1 else f"{able} nodes"
        message = f"{where} has {count} with all that was asked for of each, and {wanted.nodes.min} were asked for."
        return Reason(LIMIT, "compute.nodes.min", message, str(wanted.nodes.min), str(able), str(able), platform)
    if queue.max_time and request.duration > queue.max_time:
        long, most = describe_duration(request.duration), describe_duration(queue.max_time)
        message = f"{where} lets jobs run for {most} at most, and {long} was asked for."
        return Reason(LIMIT, "schedule.duration", message, long, most, duration_text(queue.max_time), platform)
    return None


def _holds(node: SiteNode, request: Request) -> bool:
    return is_enough(node.node, request.compute.least)


def beginning(request: Request, now: datetime) -> datetime | None:
    """Return the time before which the request can't start: its first window, or the planned end of its predecessor."""
    windows = windows_of(request, now, HORIZON)
    first = [windows[0].start] if windows else []
    first += [request.not_before] if request.not_before else []
    return max(first) if first and max(first) > now else None


def offer_for(
    scheduler: str,
    request: Request,
    wish: Placed,
    planned: datetime,
    way: str,
    platform: str,
    now: datetime,
    note: str = "",
    why: str = "earliest",
) -> Offer | Reason:
    """Make the offer for a scheduler's planned start, or return the reason if that is after all windows."""
    planned = max(planned, now, request.not_before or now)
    window: Window | None = None
    if request.windows or request.recurring:
        windows = windows_of(request, now, HORIZON)
        window = next((each for each in windows if last_start(each) >= planned), None)
        if window is None:
            message = (
                f"{scheduler} would start it{where(wish)} at {planned:%Y-%m-%d %H:%M} UTC, after the windows asked for."
            )
            nearest = f"{planned.isoformat()}/PT1H"
            return Reason("urn:window-passed", "schedule", message, nearest=nearest, platform=platform)
    start = max(planned, window.start) if window else planned
    return Offer(
        platform=platform,
        way=way,
        start=start,
        latest_start=max(start, last_start(window)) if window else start,
        duration=request.duration,
        nodes=(),
        shape=wish.amounts.shape,
        terms=Predicted(p10=start, p50=start, p90=start, samples=0, as_of=now),
        why=f"{why}{where(wish)}{in_parts(wish)}{note}",
        queue=wish.queue,
        count=wish.amounts.nodes,
        begin=window.start if window and window.start > now else None,
        parts=wish.amounts.parts,
    )


def in_parts(wish: Placed) -> str:
    """Describe how an offer is split into several jobs; empty if it is one job."""
    amounts, count = wish.amounts, wish.amounts.shape.cores
    if amounts.parts == 1:
        return ""
    cores = "1 core" if count == 1 else f"{count} cores"
    return f", in {amounts.parts} parts with {cores} and {describe_duration(amounts.time)} each"


def answer(offers: Sequence[Offer], reasons: Sequence[Reason]) -> Answer:
    """Return the offers by start, without duplicates of a queue, window and terms.

    Or the reasons if there are no offers.
    """
    apart: dict[tuple[object, ...], Offer] = {}
    for offer in offers:
        apart.setdefault((offer.terms.kind, offer.queue, offer.begin, offer.latest_start), offer)
    return Answer(tuple(sorted(apart.values(), key=lambda offer: offer.start)), () if offers else tuple(reasons))
