"""Checks of a job's size against one queue: nodes, cores, memory, GPUs, time, and the number of jobs.

Nodes and cores are never silently converted into each other: where a number could mean either, the message gives both
readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from sublet.booking.model.amounts import duration_text, memory_text
from sublet.booking.model.request import GIB
from sublet.kernel.texts import count_text, describe_duration
from sublet.systems.model.system import NodeKind, Queue, Quota, System
from sublet.systems.model.wish import State, SystemFinding, Wish

NEARLY = 0.9  # fraction of the nominal memory above which a job may find less
_WHOSE = {"user": "one user", "project": "one project", "group": "one group", "": "one user or group"}


@dataclass(frozen=True, slots=True)
class Case:
    """A wish that is checked against one queue of a system."""

    system: System
    queue: Queue
    wish: Wish

    @property
    def kinds(self) -> tuple[NodeKind, ...]:
        """The types of node that the job could get."""
        chosen = tuple(kind for kind in self.queue.nodes if kind.select == f"-C {self.wish.constraint}")
        return chosen or self.queue.nodes

    @property
    def with_gpus(self) -> tuple[NodeKind, ...]:
        """The types of node among `kinds` that have enough GPUs; all of them if none has."""
        wanted = self.wish.gpus or 0
        return tuple(kind for kind in self.kinds if kind.gpus >= wanted or _has_uncounted_gpus(kind)) or self.kinds

    @property
    def with_cores(self) -> tuple[NodeKind, ...]:
        """The types of node among `with_gpus` that have enough cores, as far as is known; all of them if none has."""
        wanted = self.wish.cores or 0
        return tuple(kind for kind in self.with_gpus if (kind.cores or wanted) >= wanted) or self.with_gpus

    @property
    def fitting(self) -> tuple[NodeKind, ...]:
        """The types of node among `with_cores` that have enough memory; none if none has."""
        wanted = self.wish.memory or 0
        return tuple(kind for kind in self.with_cores if (kind.most_memory or wanted) >= wanted)

    def quotas(self, what: str) -> Iterator[tuple[int, str]]:
        """Yield the limits on all jobs together, each with its explanation."""
        for quota in self.queue.quotas:
            if quota.what == what:
                yield quota.most, f"All jobs of {_WHOSE[quota.per]} in {self.queue.name} have {_amount(quota)} together"


@dataclass(frozen=True, slots=True)
class _Part:
    """The common values of all findings about one part."""

    field: str
    wanted: str
    limit: str = ""

    def make_finding(self, state: State, message: str = "", nearest: str = "") -> SystemFinding:
        return SystemFinding(state, self.field, f"--{self.field}", self.wanted, self.limit, message, nearest)


def check_sizes(case: Case) -> list[SystemFinding]:
    """Return a finding for each part of the wish that has a size."""
    return [check(case) for check in (_nodes, _cores, _memory, _gpus, _time, _jobs)]


def _nodes(case: Case) -> SystemFinding:
    queue, count = case.queue, case.wish.node_count
    part = _Part("nodes", _show(case.wish.nodes, "1"), _span(queue.min_nodes, queue.max_nodes))
    if queue.min_nodes and count < queue.min_nodes:
        message = f"{queue.name} takes jobs of {queue.min_nodes} nodes and more."
        return part.make_finding("error", message, f"--nodes {queue.min_nodes}")
    over = _find_exceeded_limit(part, count, _node_limits(case), lambda most: f"--nodes {most}")
    return over or part.make_finding("ok" if queue.max_nodes else "unknown")


def _node_limits(case: Case) -> Iterator[tuple[int, str]]:
    queue = case.queue
    yield from case.quotas("nodes")
    if queue.max_nodes:
        yield queue.max_nodes, f"{queue.name} takes jobs of {count_text(queue.max_nodes, 'node')} at most"
    if case.kinds and all(kind.count for kind in case.kinds):
        there = sum(kind.count or 0 for kind in case.kinds)
        yield there, f"There are {there} such nodes"


def _cores(case: Case) -> SystemFinding:
    queue, wish = case.queue, case.wish
    each = _most(kind.cores for kind in case.with_gpus)
    whole = queue.sharing == "whole"
    part = _Part(
        "cores", _show(wish.cores, f"all {each}" if whole and each else "1"), f"{each} on each node" if each else ""
    )
    if wish.cores is None:
        return _cores_not_said(case, part, each)
    if each and wish.cores > each:
        return _both_readings(part, case, wish.cores, each, queue.max_cores)
    in_all = wish.cores * wish.node_count
    if queue.min_cores and in_all < queue.min_cores:
        message = f"{queue.name} takes jobs of {queue.min_cores} cores and more."
        return part.make_finding("error", message, f"--cores {-(-queue.min_cores // wish.node_count)}")
    limits = list(case.quotas("cores"))
    if queue.max_cores:
        limits.append((queue.max_cores, f"{queue.name} takes jobs of {count_text(queue.max_cores, 'core')} at most"))
    if over := _find_exceeded_limit(part, in_all, limits, lambda most: _spread("cores", most, wish.node_count)):
        return over
    if whole and wish.cores < each:
        message = f"{queue.name} gives whole nodes: the job takes all {each} cores of each, not {wish.cores}."
        return part.make_finding("warning", message, f"--cores {each}")
    return part.make_finding("ok" if each or queue.max_cores else "unknown")


def _cores_not_said(case: Case, part: _Part, each: int) -> SystemFinding:
    count, queue = case.wish.node_count, case.queue
    if queue.sharing != "whole" and count > 1 and each:
        message = (
            f"{count} nodes alone could mean {count} x {each} cores, all of each node,"
            f" or {count} x 1 core; neither is taken for granted."
        )
        return replace(part, wanted="not said").make_finding("warning", message, f"--cores {each}, or --cores 1")
    return part.make_finding("ok" if each else "unknown")


def _both_readings(part: _Part, case: Case, asked: int, each: int, of_a_job: int | None) -> SystemFinding:
    """Report an amount that no node has, with both readings: for each node, or for all nodes together."""
    wish, noun = case.wish, part.field
    message = f"No node of {case.queue.name} has {asked} {noun}; they have {each}. --{noun} is for each node."
    in_all = [each * wish.node_count, *(most for most, _ in case.quotas(noun)), *([of_a_job] if of_a_job else [])]
    nearest = _spread(noun, min(in_all), wish.node_count)
    if wish.nodes is None:
        count = -(-asked // each)
        message += f" If {asked} in all were meant, they take {count} nodes"
        most = min((most for most, _ in _node_limits(case)), default=count)
        if count > most:
            return part.make_finding("error", f"{message}, and a job has {most} at most.", nearest)
        return part.make_finding("error", f"{message}.", f"{nearest}, or --nodes {count} --{noun} {-(-asked // count)}")
    spread = -(-asked // wish.nodes)
    if wish.nodes > 1 and spread < each:
        message += f" If {asked} in all were meant, that is {spread} on each of {wish.nodes} nodes."
        nearest += f", or --{noun} {spread}"
    return part.make_finding("error", message, nearest)


def _memory(case: Case) -> SystemFinding:
    queue, wish, system = case.queue, case.wish, case.system
    most = _most(kind.most_memory for kind in case.with_cores)
    part = _Part("memory", _show(wish.memory and memory_text(wish.memory), "not said"), _memory_limit(case.with_cores))
    if queue.min_memory and (wish.memory or 0) < queue.min_memory:
        message = f"{queue.name} takes jobs of {memory_text(queue.min_memory)} and more."
        return part.make_finding("error", message, f"--memory {memory_text(queue.min_memory)}")
    if wish.memory is None:
        return part.make_finding("ok")
    count, limits = wish.node_count, list(case.quotas("memory"))
    if most:
        such = " with such cores and GPUs" if len(case.with_cores) < len(case.kinds) else ""
        limits.append((most * count, f"No node of {queue.name}{such} has more than {_gib(most)}"))
    if over := _find_exceeded_limit(
        part, wish.memory * count, limits, lambda limit: f"--memory {_gib(limit // count)}"
    ):
        return over
    if "--mem" in system.refuses:
        message = f"{system.name} refuses --mem; without it a job has all the memory of its nodes."
        return part.make_finding("warning", message, "leave --memory out")
    return part.make_finding(*_tight(case, wish.memory)) if most else part.make_finding("unknown")


def _tight(case: Case, memory: int) -> tuple[State, str]:
    able = case.fitting
    if len(able) < len(case.with_cores) and not any(kind.select for kind in able):
        return "warning", f"Only some nodes of {case.queue.name} have so much; the job may wait longer."
    if not any(kind.usable for kind in able) and memory > NEARLY * max(kind.memory or 0 for kind in able):
        return "warning", "A job can have less than the nodes nominally have; how much less is not known."
    return "ok", ""


def _gpus(case: Case) -> SystemFinding:
    queue, wish = case.queue, case.wish
    asked, each = wish.gpus or 0, max((kind.gpus for kind in case.kinds), default=0)
    known = bool(case.kinds) and not any(_has_uncounted_gpus(kind) for kind in case.kinds)
    limit = f"{each} on each node" if each else "none" if known else ""
    part = _Part("gpus", _show(wish.gpus, "0"), limit)
    if asked and known and not each:
        return part.make_finding("error", f"Nodes of {queue.name} have no GPUs.", "--gpus 0")
    if known and asked > each:
        return _both_readings(part, case, asked, each, queue.max_gpus)
    limits = list(case.quotas("gpus"))
    if queue.max_gpus:
        limits.append((queue.max_gpus, f"{queue.name} takes jobs of {count_text(queue.max_gpus, 'GPU')} at most"))
    if over := _find_exceeded_limit(
        part, asked * wish.node_count, limits, lambda most: _spread("gpus", most, wish.node_count)
    ):
        return over
    if not asked and case.kinds and all(kind.gpus for kind in case.kinds):
        message = f"Each node of {queue.name} has GPUs, and none is asked for."
        return part.make_finding("warning", message, f"--gpus {each}")
    if asked and asked < each and queue.sharing == "whole":
        message = f"{queue.name} gives whole nodes: the job takes all {each} GPUs of each, not {asked}."
        return part.make_finding("warning", message, f"--gpus {each}")
    return part.make_finding("ok" if known or not asked else "unknown", _how_chosen(case) if asked else "")


def _how_chosen(case: Case) -> str:
    words = [kind.select for kind in case.kinds if kind.select and not kind.select.startswith("-C ")]
    return f"A sort is chosen by {', '.join(words)}." if words else ""


def _time(case: Case) -> SystemFinding:
    queue, wish = case.queue, case.wish
    most = _longest(queue, wish.node_count)
    span = _span(queue.min_time and describe_duration(queue.min_time), most and describe_duration(most))
    part = _Part("time", _show(wish.time and describe_duration(wish.time), "not said"), span)
    if wish.time is None:
        state: State = "error" if "time" in case.system.needs else "warning"
        message = f"{case.system.name} wants it to be said." if state == "error" else "A site's default can be minutes."
        return part.make_finding(
            state, message, f"{wish.time_flag} {duration_text(most)}, or less" if most else f"{wish.time_flag} 1h"
        )
    if queue.min_time and wish.time < queue.min_time:
        message = f"{queue.name} takes jobs of {describe_duration(queue.min_time)} and more."
        return part.make_finding("error", message, f"{wish.time_flag} {duration_text(queue.min_time)}")
    if most is None:
        return part.make_finding("unknown")
    if wish.time <= most:
        return part.make_finding("ok")
    message = (
        f"{queue.name} lets jobs of {count_text(wish.node_count, 'node')} run for {describe_duration(most)} at most"
    )
    nearest = f"{wish.time_flag} {duration_text(most)}"
    longer = next((step for step in queue.time_by_nodes if step.time >= wish.time), None)
    if longer:
        message += f", and for {describe_duration(longer.time)} those of {longer.min_nodes}-{longer.max_nodes} nodes"
        count = longer.min_nodes if longer.min_nodes > wish.node_count else longer.max_nodes
        nearest += f", or --nodes {count}"
    return part.make_finding("error", f"{message}.", nearest)


def _longest(queue: Queue, nodes: int) -> timedelta | None:
    steps = (step.time for step in queue.time_by_nodes if step.min_nodes <= nodes <= step.max_nodes)
    return next(steps, queue.max_time)


def _jobs(case: Case) -> SystemFinding:
    queue, count = case.queue, case.wish.jobs or 1
    counts = [quota for quota in queue.quotas if quota.what in ("running", "submitted")]
    part = _Part("jobs", _show(case.wish.jobs, "1"), ", ".join(f"{quota.most} {quota.what}" for quota in counts))
    for quota in sorted(counts, key=lambda quota: quota.what, reverse=True):  # "submitted" first
        if count > quota.most:
            whose = _WHOSE[quota.per]
            if quota.what == "submitted":
                message = f"{queue.name} takes {count_text(quota.most, 'job')} of {whose}, waiting and running."
                return part.make_finding("error", message, f"--jobs {quota.most}")
            message = f"{queue.name} runs {count_text(quota.most, 'job')} of {whose} at a time; the others wait."
            return part.make_finding("warning", message, f"--jobs {quota.most}")
    return part.make_finding("ok" if counts or count == 1 else "unknown")


def _find_exceeded_limit(
    part: _Part, wanted: int, limits: Iterable[tuple[int, str]], nearest: Callable[[int], str]
) -> SystemFinding | None:
    """Return a finding for the strictest limit that is exceeded, or None."""
    over = [(most, why) for most, why in limits if wanted > most]
    if not over:
        return None
    most, why = min(over)
    return part.make_finding("error", f"{why}.", nearest(most))


def _memory_limit(kinds: tuple[NodeKind, ...]) -> str:
    most = _most(kind.most_memory for kind in kinds)
    nominal = "" if any(kind.usable == most for kind in kinds) else ", nominally"
    return f"{_gib(most)} on each node{nominal}" if most else ""


def _most(amounts: Iterable[int | None]) -> int:
    """Return the largest amount, or 0 if one is unknown, because that one could be larger."""
    known = list(amounts)
    return 0 if None in known else max((amount or 0 for amount in known), default=0)


def _has_uncounted_gpus(kind: NodeKind) -> bool:
    """Whether a type of node has GPUs whose number isn't known."""
    return bool(kind.gpu) and not kind.gpus


def _amount(quota: Quota) -> str:
    if quota.what == "memory":
        return memory_text(quota.most)
    return count_text(quota.most, {"nodes": "node", "cores": "core", "gpus": "GPU"}.get(quota.what, "job"))


def _spread(noun: str, most: int, nodes: int) -> str:
    """Return the flags that spread an amount over this many nodes."""
    return f"--{noun} {most // nodes}" if most >= nodes else f"--nodes {most} --{noun} 1"


def _gib(size: int) -> str:
    """Format a size, rounded down to whole GiB if it is larger than one."""
    return memory_text(size // GIB * GIB if size > GIB else size)


def _show(value: object, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def _span(least: object, most: object) -> str:
    if least and most:
        return f"{least} to {most}"
    return f"up to {most}" if most else f"from {least}" if least else ""
