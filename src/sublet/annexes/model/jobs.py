"""HTCondor jobs in a person's own queue, and why a waiting job doesn't run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sublet.annexes.model.lease_state import AnnexState, LeaseState
from sublet.annexes.model.universes import ON_NODES, advise, say_no
from sublet.booking.model.amounts import memory_text
from sublet.kernel.texts import describe_duration

JobWord = Literal["idle", "running", "removed", "completed", "held", "ending", "suspended"]
SOON = timedelta(minutes=2)  # how long a job that fits may wait before something else must be the reason
SHORTEST = timedelta(minutes=1)  # a job without a time limit starts on no node that ends sooner


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job known to the access point."""

    id: str  # 12.0
    state: JobWord
    name: str  # its batch, or else its program
    annex: str = ""  # the id of the annex that it names
    node: str = ""  # where it runs, or last ran
    submitted: datetime | None = None
    since: datetime | None = None  # when its state began
    cores: int | None = None  # its request, if that is a plain number
    memory: int | None = None  # in bytes
    disk: int | None = None  # in bytes
    gpus: int | None = None
    time: timedelta | None = None
    why: str = ""  # why it is held, or was removed
    code: int | None = None  # its exit code
    session: str = ""  # the session that it runs
    guest: str = ""  # the person it runs for, if not the annex's owner
    jobset: str = ""
    universe: str = "vanilla"
    in_place: bool = False  # whether its files aren't transferred: it needs a file system shared with nodes
    pulled: str = ""  # why its node pulls its image itself
    limits: str = ""  # its concurrency limits, which only a negotiator counts
    returns: int = 0  # how often it came back from a node to the queue
    returned: str = ""  # why, the last time


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """The total and free resources of one node of an annex."""

    cores: int
    free_cores: int
    memory: int  # in bytes
    free_memory: int
    disk: int  # in bytes
    free_disk: int
    gpus: int
    free_gpus: int
    ends: datetime | None = None
    is_static: bool = False  # whether this is one of several slots of equal size, and not the whole node


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a job is in its state: a sentence for each reason, and a hint."""

    sentences: tuple[str, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """The facts with which a waiting job is explained."""

    annex: AnnexState | None  # the annex that it names, if it is the person's
    open_annexes: Sequence[str] = ()  # annexes that run all jobs
    nodes: Sequence[NodeRoom] | None = None  # None: the access point didn't answer
    unmet: Sequence[str] = ()  # requirements of the job that no slot meets
    exclusive: bool = False  # whether the access point's jobs run only on HTCondor's own annexes
    bringing: bool = False  # whether it waits for its shared inputs to be copied


def _bytes(count: int) -> str:
    return f"{memory_text(count >> 20 << 20)} of"


# Resources that a job requests, each with the function that formats an amount.
AMOUNTS: tuple[tuple[str, Callable[[int], str]], ...] = (
    ("cores", str),
    ("memory", _bytes),
    ("disk", _bytes),
    ("gpus", str),
)


def explain(job: QueuedJob, looked: Looked, now: datetime) -> Explained:
    """Explain why a job runs or doesn't, why its node has to pull its image, and why it came back from a node."""
    why = _explain_state(job, looked, now)
    if job.state not in ("idle", "running"):
        return why
    more = [f"Its image is pulled by its node, in the job's own time: {job.pulled}"] if job.pulled else []
    if job.returns and job.returned:
        times = "once," if job.returns == 1 else f"{job.returns} times, the last time"
        more.append(f"It came back from a node to the queue {times} because: {job.returned}")
    return Explained((*why.sentences, *more), why.hint)


def _explain_state(job: QueuedJob, looked: Looked, now: datetime) -> Explained:
    if job.state != "idle":
        return _not_waiting(job)
    if job.universe not in ON_NODES:
        remedy = f"`sublet job remove {job.id}` takes it out of the queue."
        return Explained((say_no(job.universe),), f"{remedy} {advise(job.universe)}")
    if not job.annex and not looked.open_annexes:
        return Explained(
            ("It names no annex, and none is open to all your jobs.",),
            f"`sublet job mark {job.id} --annex NAME` lets it run on one; `sublet annex open NAME` opens one.",
        )
    if job.annex and looked.annex is None:
        return Explained(
            ("It names an annex that is not yours, or is no more.",),
            f"`sublet job move {job.id} --annex NAME` names another; `sublet annex status` lists yours.",
        )
    if looked.annex and looked.annex.annex.sessions:
        return Explained(
            ("Its annex is closed to jobs: sessions alone run there.",),
            f"`sublet annex close {looked.annex.annex.name}` lets it run jobs that name it again.",
        )
    names = looked.annex.annex.name if looked.annex else ", ".join(looked.open_annexes)
    if job.in_place:
        return _in_place(names)
    if job.limits:
        return _explain_limits(job, names)
    if looked.annex is None:
        return Explained((f"It names no annex, and waits for room on what is open to all your jobs: {names}.",))
    return _waiting(job, looked.annex, looked, now)


def _not_waiting(job: QueuedJob) -> Explained:
    if job.state == "held":
        return Explained(
            (f"It is held: {job.why or 'no reason was given'}",), f"`condor_release {job.id}` lets it go on."
        )
    if job.state == "completed":
        return Explained((f"It has ended with exit code {job.code}." if job.code is not None else "It has ended.",))
    if job.state == "removed":
        return Explained((f"It was removed: {job.why or 'no reason was given'}",))
    where = f" on {job.node}" if job.node else ""
    words = {"suspended": "It was suspended", "ending": "It has ended, and its files come back"}
    return Explained((f"{words.get(job.state, 'It runs')}{where}.",))


def _in_place(name: str) -> Explained:
    return Explained(
        (f"It says should_transfer_files = NO, and no node of {name} shares a file system with this machine.",),
        "Submit it again without that line; its files are then copied to the node, and its results come back.",
    )


def _explain_limits(job: QueuedJob, name: str) -> Explained:
    return Explained(
        (
            f"It says concurrency_limits = {job.limits}, and HTCondor gives such jobs to no node of {name}: "
            "the nodes of annexes take jobs without a negotiator, which alone counts these limits.",
        ),
        f"`condor_qedit {job.id} ConcurrencyLimits undefined` lets it run without them.",
    )


def _waiting(job: QueuedJob, state: AnnexState, looked: Looked, now: datetime) -> Explained:
    name = state.annex.name
    if not state.leases:
        return Explained((f"{name} has no nodes.",), f"`sublet annex create {name}` leases some.")
    if not any(lease.state == "up" for lease in state.leases):
        queued = tuple(_not_up(name, lease) for lease in state.leases)
        return Explained(queued, f"`sublet annex status {name}` says more.")
    if _is_draining(state):
        return Explained(
            (f"Every node of {name} is being drained: none takes new jobs.",),
            f"`sublet annex undrain {name}` lets them; `sublet annex add {name}` leases others.",
        )
    if looked.nodes is None:
        return Explained((f"How full {name} is can't be told: {state.trouble or 'the access point did not say'}.",))
    if lacks := tuple(_lacks(job, name, looked.nodes)):
        return Explained(lacks, f"Ask for less, or lease more: `sublet annex add {name}`.")
    if late := _late(job, name, looked.nodes, now):
        return Explained((late,), f"`sublet annex add {name} --lifetime TIME` leases nodes that last.")
    if looked.bringing:
        return Explained((f"An image or large input that it shares with other jobs is being copied to {name}.",))
    if looked.unmet:
        unmet = tuple(f"No node of {name} meets what it requires: {condition}" for condition in looked.unmet)
        return Explained(unmet, "Change its requirements with condor_qedit, or submit it again.")
    if busy := tuple(_busy(job, name, looked.nodes)):
        return Explained(busy, f"`sublet annex add {name}` leases more.")
    return _fits(job, state, looked, now)


def _is_draining(state: AnnexState) -> bool:
    """Whether all nodes that are up are draining."""
    up = [node for lease in state.leases for node in lease.nodes if node.state == "up"]
    return bool(up) and all(node.draining for node in up)


def _fits(job: QueuedJob, state: AnnexState, looked: Looked, now: datetime) -> Explained:
    """Explain why a job waits although there is room for it."""
    name = state.annex.name
    if looked.exclusive:
        return Explained(
            ("The access point says ANNEX_JOBS_EXCLUSIVELY: its jobs run on annexes that HTCondor itself made alone.",),
            "Ask its administrator to unset it, or use an access point of your own: `sublet annex setup --help`.",
        )
    if waited := _long_wait(job, state, now):
        return Explained(
            (f"{name} has room for it, and nothing that it requires is missing; but it has waited for {waited}.",),
            f"`condor_q -better-analyze {job.id}` says what HTCondor makes of it; the access point may not allow it.",
        )
    return Explained((f"{name} has room for it: it starts within seconds.",))


def _long_wait(job: QueuedJob, state: AnnexState, now: datetime) -> str:
    """Return how long a job has waited although nodes were up, if that is unusual; otherwise an empty string."""
    starts = [lease.session.started for lease in state.leases if lease.session and lease.session.started]
    since = max([job.since or now, *starts[:1]])
    return describe_duration(_whole(now - since)) if now - since > SOON else ""


def _not_up(name: str, lease: LeaseState) -> str:
    expected = f"; it is expected to start at {lease.expected.p50:%Y-%m-%d %H:%M} UTC" if lease.expected else ""
    why = f": {lease.why}" if lease.why else ""
    return f"{name}#{lease.lease.number} is {lease.state}{why}{expected}."


def _lacks(job: QueuedJob, name: str, nodes: Sequence[NodeRoom]) -> Iterator[str]:
    for word, text in AMOUNTS:
        wanted, most = getattr(job, word), max((getattr(node, word) for node in nodes), default=0)
        if wanted is not None and wanted > most:
            noun = "slot" if any(node.is_static for node in nodes) else "node"
            yield f"It asks for {text(wanted)} {word}; no {noun} of {name} has more than {text(most)} {word}."


def _late(job: QueuedJob, name: str, nodes: Sequence[NodeRoom], now: datetime) -> str:
    needed, ends = job.time or SHORTEST, [node.ends for node in nodes if node.ends]
    if not ends or len(ends) < len(nodes) or max(ends) >= now + needed:
        return ""
    left = max(max(ends) - now, timedelta(0))
    ends_in = describe_duration(_whole(left))
    return f"It may run for {describe_duration(needed)}; the last node of {name} ends in {ends_in}."


def _busy(job: QueuedJob, name: str, nodes: Sequence[NodeRoom]) -> Iterator[str]:
    if any(all((getattr(job, word) or 0) <= getattr(node, f"free_{word}") for word, _ in AMOUNTS) for node in nodes):
        return
    yield f"The nodes of {name} are busy: no one has all at once free that it asks for."
    for word, text in AMOUNTS:
        wanted, most = getattr(job, word), max((getattr(node, f"free_{word}") for node in nodes), default=0)
        if wanted is not None and wanted > most:
            yield f"It asks for {text(wanted)} {word}; {text(most)} {word} are free at most."


def _whole(left: timedelta) -> timedelta:
    return timedelta(seconds=round(left.total_seconds()))
