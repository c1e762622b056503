"""What a site's queues can offer to a request: which of them fit, when Slurm plans it, and else why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from sublet.booking.model.amounts import duration_text, memory_text
from sublet.booking.model.job import Job
from sublet.booking.model.offer import Answer, Offer, Predicted, Reason
from sublet.booking.model.request import Compute, Request, Window
from sublet.booking.model.windows import last_start, list_named_windows, windows_of
from sublet.kernel.errors import PlatformRefused
from sublet.kernel.texts import describe_duration
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish
from sublet.platforms.slurm.readers import SiteNode, SiteQueue, SiteReservation, by_queue, read_limiter

HORIZON = timedelta(days=400)
AT_ONCE = 4  # queues that are asked for one request, at most
MOST_PLANS = 16  # that Slurm is asked for one request
UNASKED = "; Slurm was not asked about it"
LIMIT = "urn:resource-limit"
USUAL_QOS = "normal"  # what Slurm takes where nobody names one


@dataclass(frozen=True, slots=True)
class Site:
    """What a survey found."""

    as_of: datetime
    nodes: tuple[SiteNode, ...] = ()
    queues: tuple[SiteQueue, ...] = ()
    reservations: tuple[SiteReservation, ...] = ()
    accounts: tuple[str, ...] = ()
    submits: Mapping[str, int] = field(default_factory=dict)  # account → jobs that one may have there at a time
    qos_submits: Mapping[str, int] = field(default_factory=dict)  # the same by QOS
    largest_array: int = 1


def listens(request: Request) -> bool:
    """Whether someone is to connect to it."""
    executable = request.executable
    ports = ((executable.fields.get("network") or {}) if executable else {}).get("ports") or ()
    return executable is not None and (executable.kind == "interactive" or any(port.get("access") for port in ports))


def fitting(
    request: Request, site: Site, queues: Sequence[SiteQueue], platform: str, begin: datetime | None = None
) -> tuple[list[SlurmWish], list[Reason]]:
    """What to ask of Slurm in each queue that the request fits in; else each queue's reason."""
    there = by_queue(queues, site.nodes)
    wishes, reasons = [], []
    for queue in queues:
        reason = _too_much(request, queue, there[queue.name], platform)
        if reason:
            reasons.append(reason)
        else:
            wishes.append(wish_for(request, queue, there[queue.name], begin))
    return wishes[:AT_ONCE], [] if wishes else reasons


def wish_for(request: Request, queue: SiteQueue, nodes: Sequence[SiteNode], begin: datetime | None) -> SlurmWish:
    """The least that the request needs, in this queue."""
    least, most_nodes = request.least, request.compute.nodes.max
    threads = min((node.threads for node in nodes), default=1)
    return SlurmWish(
        queue=queue.name,
        amounts=replace(least, nodes=max(least.nodes, queue.min_nodes)) if queue.min_nodes <= most_nodes else least,
        threads=threads,
        longest=queue.max_time,
        begin=begin,
        partition=queue.partition,
    )


def most_parts(site: Site, queue: str, account: SlurmAccount, there: int) -> int:
    """Of how many parts an array may be that is submitted beside so many jobs that are there."""
    own = next((one.qos for one in site.queues if one.name == queue), "")
    accounts = [account.asked.project] if account.asked.project else site.accounts
    limits = [site.submits[name] for name in accounts if name in site.submits]
    limits += [site.qos_submits[name] for name in (account.asked.qos or USUAL_QOS, own) if name in site.qos_submits]
    return max(1, min([site.largest_array, *(limit - there for limit in limits)]))


def wish_of(job: Job, site: Site, queues: Sequence[SiteQueue], platform: str, now: datetime) -> SlurmWish:
    """What is asked of Slurm for a job, which was offered before."""
    request = Request(None, Compute().exactly(job.amounts), duration=max(timedelta(seconds=1), job.until - now))
    wishes, reasons = fitting(request, site, queues, platform, job.begin)
    if not wishes and not queues:
        raise PlatformRefused(platform=platform, why="it has no queue that can be used")
    if not wishes and not job.scheduler.queue:
        raise PlatformRefused(platform=platform, why=reasons[0].message)
    best = wishes[0] if wishes else wish_for(request, queues[0], site.nodes, job.begin)
    return replace(best.cut(job.amounts.parts), names=job.nodes)


def _most(nodes: Iterable[SiteNode], of: Callable[[SiteNode], int], limit: int | None) -> int:
    most = max(map(of, nodes), default=0)
    return most if limit is None else min(most, limit)


def _too_much(request: Request, queue: SiteQueue, nodes: Sequence[SiteNode], platform: str) -> Reason | None:
    """The first limit of a queue that the request doesn't fit in."""
    wanted = request.compute
    where = f"The queue {queue.name} of {platform}" if queue.name else platform
    if not queue.up or not nodes:
        said = f"{where} takes no jobs now." if nodes else f"{where} has no nodes."
        return Reason("urn:not-supported", "platform", said, platform=platform)
    most_nodes = min(len(nodes), queue.max_nodes or len(nodes))
    threads = min(node.threads for node in nodes)
    cores = queue.max_cores // threads if queue.max_cores else None
    amounts: tuple[tuple[str, int, int, Callable[[int], str]], ...] = (
        ("nodes", wanted.nodes.min, most_nodes, str),
        ("cores", wanted.cores.min, _most(nodes, lambda n: n.node.cores, cores), str),
        ("memory", wanted.memory.min, _most(nodes, lambda n: n.node.memory, queue.max_memory), memory_text),
        ("gpus", wanted.gpus.min, _most(nodes, lambda n: n.node.gpus, None), str),
    )
    for what, least, limit, text in amounts:
        if least > limit:
            each = "" if what == "nodes" else " on a node"
            said = f"{where} gives at most {text(limit)} {what}{each}, and {text(least)} were asked for."
            return Reason(LIMIT, f"compute.{what}.min", said, text(least), text(limit), text(limit), platform)
    if wanted.nodes.max < queue.min_nodes:
        said = f"{where} takes jobs of {queue.min_nodes} nodes or more, and {wanted.nodes.max} were asked for."
        nearest = str(queue.min_nodes)
        return Reason(LIMIT, "compute.nodes.max", said, str(wanted.nodes.max), nearest, nearest, platform)
    if not any(_holds(node, request) for node in nodes):
        said = f"{where} has no node with all that was asked for of one node together."
        return Reason(LIMIT, "compute", said, platform=platform)
    if queue.max_time and request.duration > queue.max_time:
        long, most = describe_duration(request.duration), describe_duration(queue.max_time)
        said = f"{where} lets jobs run for {most} at most, and {long} was asked for."
        return Reason(LIMIT, "schedule.duration", said, long, most, duration_text(queue.max_time), platform)
    return None


def _holds(node: SiteNode, request: Request) -> bool:
    wanted, has = request.compute, node.node
    return wanted.cores.min <= has.cores and wanted.memory.min <= has.memory and wanted.gpus.min <= has.gpus


def beginning(request: Request, now: datetime) -> datetime | None:
    """Before when it will not start: the first window's own start, or the planned end of what it waits for."""
    windows = windows_of(request, now, HORIZON)
    first = [windows[0].start] if windows else []
    first += [request.not_before] if request.not_before else []
    return max(first) if first and max(first) > now else None


class Ask(NamedTuple):
    """One thing that Slurm is asked to plan."""

    request: Request
    wish: SlurmWish
    why: str = "earliest"


def asks_for(request: Request, wishes: Sequence[SlurmWish], now: datetime) -> list[Ask]:
    """The request in each queue, and in the first of them for each further window that it names."""
    asks = [Ask(request, wish) for wish in wishes]
    for window in list_named_windows(request, now, HORIZON)[1:] if wishes else ():
        alone = replace(request, windows=(window,), recurring=())
        asks.append(Ask(alone, replace(wishes[0], begin=beginning(alone, now)), "in a later window"))
    return asks


def offer_for(
    request: Request,
    wish: SlurmWish,
    planned: datetime,
    way: str,
    platform: str,
    now: datetime,
    note: str = "",
    why: str = "earliest",
) -> Offer | Reason:
    """The offer that Slurm's plan makes; or the reason, if that is after all windows."""
    planned = max(planned, now, request.not_before or now)
    window: Window | None = None
    if request.windows or request.recurring:
        windows = windows_of(request, now, HORIZON)
        window = next((one for one in windows if last_start(one) >= planned), None)
        if window is None:
            said = f"Slurm would start it{wish.where} at {planned:%Y-%m-%d %H:%M} UTC, after the windows asked for."
            nearest = f"{planned.isoformat()}/PT1H"
            return Reason("urn:window-passed", "schedule", said, nearest=nearest, platform=platform)
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
        why=f"{why}{wish.where}{in_parts(wish)}{note}",
        queue=wish.queue,
        count=wish.amounts.nodes,
        begin=window.start if window and window.start > now else None,
        parts=wish.amounts.parts,
    )


def in_parts(wish: SlurmWish) -> str:
    """That it is made of several jobs, and what each of them has."""
    amounts, count = wish.amounts, wish.amounts.shape.cores
    if amounts.parts == 1:
        return ""
    cores = "1 core" if count == 1 else f"{count} cores"
    return f", in {amounts.parts} parts with {cores} and {describe_duration(amounts.time)} each"


def refusal(wish: SlurmWish, words: str, site: Site, platform: str, now: datetime) -> Reason:
    """Slurm's own words for why it plans nothing, and what may stand in the way."""
    said = words.strip().splitlines()[-1] if words.strip() else "it gave no plan and no reason"
    said = said.removeprefix("sbatch: ").removeprefix("error: ").removeprefix("allocation failure: ")
    ahead = [one for one in site.reservations if one.end > now and one.start < (wish.begin or now) + wish.limit]
    nearest = ""
    if ahead:
        first = min(ahead, key=lambda one: one.start)
        free = timedelta(minutes=(first.start - now) // timedelta(minutes=1))
        shorter = f"a time under {describe_duration(free)}, or " if free > timedelta(minutes=5) else ""
        nearest = f"{shorter}a start after {first.end:%Y-%m-%dT%H:%M:%SZ}, when the reservation {first.name} ends"
    message = f"Slurm plans nothing for it{wish.where}: {said}"
    return Reason("urn:refused-by-platform", "compute", message, nearest=nearest, platform=platform)


def answer(offers: Sequence[Offer], reasons: Sequence[Reason]) -> Answer:
    """The offers by their start, each queue once in each window; the reasons only where there is none."""
    apart: dict[tuple[object, ...], Offer] = {}
    for offer in offers:
        apart.setdefault((offer.queue, offer.begin, offer.latest_start), offer)
    return Answer(tuple(sorted(apart.values(), key=lambda offer: offer.start)), () if offers else tuple(reasons))


def notes(site: Site, config: Mapping[str, str], now: datetime) -> tuple[str, ...]:
    """What a person should know of what was found."""
    said = []
    hidden = {word.strip().lower() for word in config.get("PrivateData", "").split(",")}
    if hidden & {"jobs", "nodes", "reservations", "partitions"}:
        said.append(f"the view is partial: this site hides others' {', '.join(sorted(hidden - {'none', ''}))}")
    if limiter := read_limiter(config):
        said.append(
            f"Slurm takes {limiter.at_once} calls at once and {limiter.per_second:g} a second; Sublet makes fewer"
        )
    for one in site.reservations:
        if one.end > now:
            span = f"{one.start:%Y-%m-%d %H:%M} to {one.end:%Y-%m-%d %H:%M} UTC"
            said.append(f"reservation {one.name}: {len(one.nodes)} nodes from {span}")
    away = [node.node.name for node in site.nodes if not node.here]
    if away:
        said.append(f"{len(away)} of {len(site.nodes)} nodes can't be used now")
    said += [f"the queue {queue.name} gives whole nodes only" for queue in site.queues if queue.whole]
    if any(node.threads > 1 for node in site.nodes):
        said.append("Slurm counts threads here; Sublet asks for whole cores, each with all its threads")
    return tuple(said)
