"""The offers of a site's queues for a request: which of them fit, when Slurm plans it, or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from sublet.booking.model.choices import Choices
from sublet.booking.model.job import Job
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Compute, Request
from sublet.booking.model.windows import list_named_windows
from sublet.kernel.errors import PlatformRefused
from sublet.kernel.texts import describe_duration
from sublet.platforms.batch.fitting import HORIZON, beginning, find_excess, of_type, where
from sublet.platforms.batch.site import SiteNode, SiteQueue, SiteReservation, by_queue, list_choices, note_absent
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish
from sublet.platforms.slurm.readers import read_limiter
from sublet.platforms.slurm.reserving import is_ours

AT_ONCE = 4  # the most queues that are asked for one request
MOST_PLANS = 16  # the most plans that Slurm is asked for one request
UNASKED = "; Slurm was not asked about it"
USUAL_QOS = "normal"  # Slurm's default if none is named


@dataclass(frozen=True, slots=True)
class Site:
    """The result of a survey."""

    as_of: datetime
    nodes: tuple[SiteNode, ...] = ()
    queues: tuple[SiteQueue, ...] = ()
    reservations: tuple[SiteReservation, ...] = ()
    accounts: tuple[str, ...] = ()
    submits: Mapping[str, int] = field(default_factory=dict)  # account → the most jobs at a time
    qos_submits: Mapping[str, int] = field(default_factory=dict)  # the same by QOS
    config: Mapping[str, str] = field(default_factory=dict)
    largest_array: int = 1
    licenses: Mapping[str, int] | None = None  # how many there are of each; None: unknown

    @property
    def choices(self) -> Choices:
        """What a request can choose among its nodes, and its licences."""
        return list_choices(self.nodes, self.licenses)


def fitting(
    request: Request, site: Site, queues: Sequence[SiteQueue], platform: str, begin: datetime | None = None
) -> tuple[list[SlurmWish], list[Reason]]:
    """Return what to request of Slurm in each queue that the request fits in, or each queue's reason if none fits."""
    there = by_queue(queues, of_type(site.nodes, request.scheduler.gpu_type))
    wishes, reasons = [], []
    for queue in queues:
        reason = find_excess(request, queue, there[queue.name], platform)
        if reason:
            reasons.append(reason)
        else:
            wishes.append(wish_for(request, queue, there[queue.name], begin))
    return wishes[:AT_ONCE], [] if wishes else reasons


def wish_for(request: Request, queue: SiteQueue, nodes: Sequence[SiteNode], begin: datetime | None) -> SlurmWish:
    """Return the least that the request needs, in this queue."""
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
    """Return the most parts of an array that can be submitted beside the jobs that are there already."""
    own = next((each.qos for each in site.queues if each.name == queue), "")
    accounts = [account.asked.project] if account.asked.project else site.accounts
    limits = [site.submits[name] for name in accounts if name in site.submits]
    limits += [site.qos_submits[name] for name in (account.asked.qos or USUAL_QOS, own) if name in site.qos_submits]
    return max(1, min([site.largest_array, *(limit - there for limit in limits)]))


def wish_of(job: Job, site: Site, queues: Sequence[SiteQueue], platform: str, now: datetime) -> SlurmWish:
    """Return what to request of Slurm for a job that was offered before.

    Raise PlatformRefused if no queue is usable.
    """
    request = Request(None, Compute().exactly(job.amounts), duration=max(timedelta(seconds=1), job.until - now))
    wishes, reasons = fitting(request, site, queues, platform, job.begin)
    if not wishes and not queues:
        raise PlatformRefused(platform=platform, why="it has no queue that can be used")
    if not wishes and not job.scheduler.queue:
        raise PlatformRefused(platform=platform, why=reasons[0].message)
    best = wishes[0] if wishes else wish_for(request, queues[0], site.nodes, job.begin)
    return replace(best.cut(job.amounts.parts), names=job.nodes)


class Ask(NamedTuple):
    """One question to Slurm: when it would start something."""

    request: Request
    wish: SlurmWish
    why: str = "earliest"


def asks_for(request: Request, wishes: Sequence[SlurmWish], now: datetime) -> list[Ask]:
    """Return the request in each queue, and in the first queue for each further window that it names."""
    asks = [Ask(request, wish) for wish in wishes]
    for window in list_named_windows(request, now, HORIZON)[1:] if wishes else ():
        alone = replace(request, windows=(window,), recurring=())
        asks.append(Ask(alone, replace(wishes[0], begin=beginning(alone, now)), "in a later window"))
    return asks


def refusal(wish: SlurmWish, words: str, site: Site, platform: str, now: datetime) -> Reason:
    """Return Slurm's own reason for planning nothing, with the reservation that may be in the way."""
    complaint = words.strip().splitlines()[-1] if words.strip() else "it gave no plan and no reason"
    complaint = complaint.removeprefix("sbatch: ").removeprefix("error: ").removeprefix("allocation failure: ")
    ahead = [
        reservation
        for reservation in site.reservations
        if reservation.end > now and reservation.start < (wish.begin or now) + wish.limit
    ]
    nearest = ""
    if ahead:
        first = min(ahead, key=lambda reservation: reservation.start)
        free = timedelta(minutes=(first.start - now) // timedelta(minutes=1))
        shorter = f"a time under {describe_duration(free)}, or " if free > timedelta(minutes=5) else ""
        nearest = f"{shorter}a start after {first.end:%Y-%m-%dT%H:%M:%SZ}, when the reservation {first.name} ends"
    message = f"Slurm plans nothing for it{where(wish)}: {complaint}"
    return Reason("urn:refused-by-platform", "compute", message, nearest=nearest, platform=platform)


def notes(site: Site, config: Mapping[str, str], now: datetime) -> tuple[str, ...]:
    """Return notes for people about a site."""
    sentences = []
    hidden = {word.strip().lower() for word in config.get("PrivateData", "").split(",")}
    if hidden & {"jobs", "nodes", "reservations", "partitions"}:
        sentences.append(f"the view is partial: this site hides others' {', '.join(sorted(hidden - {'none', ''}))}")
    if limiter := read_limiter(config):
        sentences.append(
            f"Slurm takes {limiter.at_once} calls at once and {limiter.per_second:g} a second; Sublet makes fewer"
        )
    for reservation in site.reservations:
        if reservation.end > now and not is_ours(reservation.name):
            span = f"{reservation.start:%Y-%m-%d %H:%M} to {reservation.end:%Y-%m-%d %H:%M} UTC"
            sentences.append(f"reservation {reservation.name}: {len(reservation.nodes)} nodes from {span}")
    sentences += [*note_absent(site.nodes), *site.choices.describe()]
    sentences += [f"the queue {queue.name} gives whole nodes only" for queue in site.queues if queue.whole]
    if any(node.threads > 1 for node in site.nodes):
        sentences.append("Slurm counts threads here; Sublet asks for whole cores, each with all its threads")
    return tuple(sentences)
