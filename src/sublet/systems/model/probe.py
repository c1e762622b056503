"""What a live system reports about itself, compared with what was known before anyone signed in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from sublet.booking.model.amounts import memory_text
from sublet.booking.model.choices import Choices
from sublet.kernel.texts import describe_duration
from sublet.systems.model.system import NodeKind, Queue, Quota, System

State = Literal["same", "different", "unknown"]  # unknown: one of the two sides doesn't report it
THERE, ABSENT = "there", "not there"
GIB = 1 << 30
NOMINAL = 0.9  # nodes report less memory than nominal, as firmware and kernel use some: at least this part
MODULES, CONDOR = "modules", "htcondor"  # always checked, in addition to programs
ALWAYS = ("apptainer", MODULES, CONDOR)
MAY_RESERVE = "you may make them (setting: reservations = yes)"


@dataclass(frozen=True, slots=True)
class Live:
    """What a system reports now; limits that it doesn't report are None."""

    as_of: datetime
    scheduler: str = ""
    version: str = ""
    default_queue: str = ""
    queues: tuple[Queue, ...] = ()
    qos: tuple[Queue, ...] = ()  # sets of limits that are chosen with a queue, or in place of one
    accounts: tuple[str, ...] = ()  # the person's own accounts
    tools: Mapping[str, str] = field(default_factory=dict)  # name → version or path
    choices: Choices = Choices()  # noqa: RUF009 - it can't be changed
    can_reserve: bool = False  # whether the person may make reservations, with which a setting lets Sublet hold offers


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact, as known and as reported by the live system; empty: unspecified."""

    subject: str  # `system`, `queue compute`, `tool apptainer`
    what: str
    known: str
    live: str
    state: State
    nodes_of: str = ""  # the queue whose nodes this is about, if it is about nodes


@dataclass(frozen=True, slots=True)
class Probe:
    """The comparison of a live system with what was known."""

    system: str
    live: Live
    queues: tuple[Queue, ...]  # live queues, by the names under which they were known
    differences: tuple[Difference, ...]


def compare_probe(system: System, live: Live) -> Probe:
    """Compare a live system with what was known of it."""
    queues = [live_queue(queue, live) for queue in system.queues]
    return Probe(system.name, live, (*filter(None, queues), *_others(system, live)), compare(system, live))


def compare(system: System, live: Live) -> tuple[Difference, ...]:
    """Compare every fact that either side has, in order: the system, its queues, accounts, choices, tools."""
    return (
        *_scheduler(system, live),
        *_queues(system, live),
        *_accounts(system, live),
        *_choices(live),
        *_reservations(system, live),
        *_tools(system, live),
    )


def live_queue(queue: Queue, live: Live) -> Queue | None:
    """Return the live limits of a known queue, of its partition and QOS combined; None if one of them is missing."""
    words = queue.words
    parts = [
        next((item for item in kind if item.name == words[word]), None)
        for word, kind in (("partition", live.queues), ("qos", live.qos))
        if word in words
    ]
    if not parts or None in parts:
        return None
    first, *rest = (item for item in parts if item)
    for limits in rest:
        first = tighter(first, limits)
    return replace(first, name=queue.name)


def tighter(queue: Queue, limits: Queue) -> Queue:
    """Return a queue with the tighter of both limits."""
    least = {name: _of(max, queue, limits, name) for name in ("min_nodes", "min_cores")}
    most = {name: _of(min, queue, limits, name) for name in ("max_nodes", "max_time", "max_cores", "max_gpus")}
    changed: dict[str, Any] = {**least, **most}
    return replace(queue, **changed, quotas=(*queue.quotas, *limits.quotas))


def _of(choose: Callable[..., Any], first: Queue, other: Queue, name: str) -> Any:
    values = [value for queue in (first, other) if (value := getattr(queue, name)) is not None]
    return choose(values, default=None)


def _difference(
    subject: str, what: str, known: str, live: str, *, same: bool | None = None, nodes_of: str = ""
) -> Iterator[Difference]:
    if known or live:
        alike = known == live if same is None else same
        state: State = "unknown" if not (known and live) else "same" if alike else "different"
        yield Difference(subject, what, known, live, state, nodes_of)


def _scheduler(system: System, live: Live) -> Iterator[Difference]:
    yield from _difference("system", "scheduler", system.scheduler, live.scheduler)
    older, newer = system.version, live.version
    yield from _difference("system", "version", older, newer, same=f"{newer}.".startswith(f"{older}."))
    yield from _difference("system", "default queue", system.default_queue, live.default_queue)


def _queues(system: System, live: Live) -> Iterator[Difference]:
    for queue in system.queues:
        seen = live_queue(queue, live)
        if seen is None:
            yield Difference(_subject(queue), "queue", THERE, ABSENT, "different")
        else:
            yield from _limits(queue, seen)
    for other in _others(system, live):
        yield Difference(_subject(other), "queue", "", THERE, "unknown")
        yield from _limits(Queue(other.name), other)


def _subject(queue: Queue) -> str:
    return f"queue {queue.name}"


def _others(system: System, live: Live) -> list[Queue]:
    """Return the live queues of which nothing was known."""
    meant = {queue.name for queue in system.queues} | {queue.words.get("partition", "") for queue in system.queues}
    return [queue for queue in live.queues if queue.name not in meant]


def _limits(known: Queue, live: Queue) -> Iterator[Difference]:
    subject = _subject(known)
    texts: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("min_nodes", "fewest nodes", str),
        ("max_nodes", "most nodes", str),
        ("max_time", "longest time", describe_duration),
        ("min_cores", "fewest cores", str),
        ("max_cores", "most cores", str),
        ("max_gpus", "most GPUs", str),
    )
    sliced = known.sharing == "slice" and live.sharing == "shared"  # a slice is part of a shared node
    yield from _difference(
        subject, "sharing", known.sharing, live.sharing, same=sliced or known.sharing == live.sharing
    )
    for name, what, text in texts:
        before, now = getattr(known, name), getattr(live, name)
        yield from _difference(subject, what, text(before) if before else "", text(now) if now else "")
    yield from _nodes(known, live)
    yield from _quotas(subject, known.quotas, live.quotas)


def _nodes(known: Queue, live: Queue) -> Iterator[Difference]:
    subject, name, both = _subject(known), known.name, (known.nodes, live.nodes)
    cores = [_order(kind.cores for kind in kinds) for kinds in both]
    gpus = [_order(kind.gpus for kind in kinds) for kinds in both]
    yield from _difference(subject, "cores of a node", *(_join(values, str) for values in cores), nodes_of=name)
    before, now = (_join(_order(kind.most_memory for kind in kinds), _size) for kinds in both)
    yield from _difference(subject, "memory of a node", before, now, same=_same_memory(*both), nodes_of=name)
    if any(gpus[0]) or any(gpus[1]):
        yield from _difference(subject, "GPUs of a node", *(_join(values, str) for values in gpus), nodes_of=name)


def _size(memory: int) -> str:
    """Format a memory size: exactly below 10 GiB, otherwise rounded to GiB."""
    return memory_text(memory if memory < 10 * GIB else round(memory / GIB) * GIB)


def _order(values: Iterable[int | None]) -> list[int]:
    return sorted({value for value in values if value is not None})


def _join(values: list[int], text: Callable[[int], str]) -> str:
    return ", ".join(map(text, values))


def _same_memory(known: tuple[NodeKind, ...], live: tuple[NodeKind, ...]) -> bool:
    """Whether each type of node on one side has a match on the other."""
    forth = all(any(alike(kind, node) for node in live) for kind in known if kind.most_memory)
    back = all(any(alike(kind, node) for kind in known) for node in live if node.memory)
    return forth and back


def alike(known: NodeKind, live: NodeKind) -> bool:
    """Whether a live node's memory is close to its known nominal or usable memory."""
    names = [memory for memory in (known.memory, known.usable) if memory]
    return bool(live.memory) and any(NOMINAL * name <= (live.memory or 0) <= name / NOMINAL for name in names)


def _quotas(subject: str, known: tuple[Quota, ...], live: tuple[Quota, ...]) -> Iterator[Difference]:
    before, now = ({(quota.per, quota.what): quota.most for quota in quotas} for quotas in (known, live))
    for per, what in dict.fromkeys((*before, *now)):
        text = _size if what == "memory" else str
        words = [text(limits[per, what]) if (per, what) in limits else "" for limits in (before, now)]
        yield from _difference(subject, f"most {what}{f' per {per}' if per else ''}", *words)


def _accounts(system: System, live: Live) -> Iterator[Difference]:
    names = ", ".join(live.accounts)
    yield from _difference("system", "your projects", system.project, names, same=system.project in live.accounts)


def _choices(live: Live) -> Iterator[Difference]:
    """Yield what requests can choose there besides sizes, which only the live system reports."""
    for what, names in live.choices.list_named().items():
        yield from _difference("system", what, "", names)


def _reservations(system: System, live: Live) -> Iterator[Difference]:
    """Yield whether the person may make reservations there, and whether the settings use them."""
    known = system.settings.get("reservations", "")
    used = "yes" if known not in ("", 0, False, "0", "no", "false") else ""
    yield from _difference("system", "reservations", used, MAY_RESERVE if live.can_reserve else "", same=True)


def _tools(system: System, live: Live) -> Iterator[Difference]:
    known = {tool.name: tool for tool in system.tools}
    for name in dict.fromkeys((*known, *ALWAYS, *live.tools)):
        tool, installed = known.get(name), live.tools.get(name, "")
        version = tool.version if tool else ""
        same = bool(installed) and (not version or version in installed)
        yield from _difference(
            f"tool {name}", "tool", (version or THERE) if tool else "", installed or ABSENT, same=same
        )
