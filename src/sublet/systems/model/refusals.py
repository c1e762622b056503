"""What a system would refuse, known before anyone signs in: each part of a wish, and the flag that changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, timedelta

from sublet.booking.model.shape import SIZES
from sublet.systems.model.sizes import Case, check_sizes
from sublet.systems.model.system import Queue, System
from sublet.systems.model.wish import SystemFinding, Wish

SOON = timedelta(days=60)
ATTRIBUTES = ("project", "queue", "nodes", "time", "constraint")  # other requirements are options
_SIZES = (*SIZES, "time")
_PARTS = ("cores", "gpus")
_TESTS = ("tests", "interactive work", "courses")


def check(system: System, wish: Wish, today: date | None = None) -> tuple[SystemFinding, ...]:
    """Check every part of a wish; the person's own project, queue and constraint are the defaults."""
    wish = fill_wish(system, wish)
    queue, asked = _queue(system, wish)
    case = Case(system, queue or Queue(""), wish)
    sizes = check_sizes(case) if queue else _not_known(wish)
    return (
        *_closing(system, today),
        asked,
        _project(system, wish),
        *_constraint(case),
        *_elsewhere(case, sizes),
        *_options(system, wish),
    )


def queue_for(system: System, wish: Wish) -> Queue | None:
    """Return the queue that a wish is checked against, or None if the system's queues aren't known."""
    return _queue(system, fill_wish(system, wish))[0]


def takers(system: System, wish: Wish) -> list[Queue]:
    """Return the queues open to everyone that accept a wish with the fewest warnings; test queues come last."""
    judged = [(queue, *_faults(system, queue, wish)) for queue in system.queues if not queue.access]
    able = [(warnings, queue) for queue, errors, warnings in judged if not errors]
    least = min((warnings for warnings, _ in able), default=0)
    best = [queue for warnings, queue in able if warnings == least]
    return sorted(best, key=lambda queue: (queue.preemptible, queue.purpose in _TESTS))


def fill_wish(system: System, wish: Wish) -> Wish:
    """Fill in the person's own project, queue and constraint where the wish has none."""
    return replace(
        wish,
        project=wish.project or system.project,
        queue=wish.queue or system.queue,
        constraint=wish.constraint or system.constraint,
    )


def _faults(system: System, queue: Queue, wish: Wish) -> tuple[int, int]:
    states = [finding.state for finding in check_sizes(Case(system, queue, wish))]
    return states.count("error"), states.count("warning")


def _queue(system: System, wish: Wish) -> tuple[Queue | None, SystemFinding]:
    """Return the queue to check the other parts against, and the finding about the choice of queue."""
    names, flag = ", ".join(queue.name for queue in system.queues), "--queue"
    wanted = wish.queue or "not said"
    if not system.queues:
        return None, SystemFinding(
            "unknown", "queue", flag, wanted, "", f"Nothing is known of the queues of {system.name}."
        )
    if queue := system.find_queue(wish.queue):
        return queue, SystemFinding("warning" if _but(queue) else "ok", "queue", flag, wanted, names, _but(queue))
    best = takers(system, wish)
    nearest = f"--queue {best[0].name}" if best else ""
    near = best[0] if best else min(system.queues, key=lambda queue: _faults(system, queue, wish))
    if wish.queue:
        message = f"{system.name} has no queue {wish.queue}; the rest is checked against {near.name}."
        return near, SystemFinding("error", "queue", flag, wanted, names, message, nearest)
    if queue := system.find_queue(system.default_queue):
        message = f"{system.name} takes {queue.name} if none is said. {_but(queue)}".rstrip()
        return queue, SystemFinding(
            "warning", "queue", flag, wanted, names, message, nearest or f"--queue {queue.name}"
        )
    if "queue" in system.needs:
        message = f"{system.name} wants a queue to be named; the rest is checked against {near.name}."
        return near, SystemFinding("error", "queue", flag, wanted, names, message, nearest)
    message = f"Which one {system.name} would take is not known; the rest is checked against {near.name}."
    return near, SystemFinding("warning", "queue", flag, wanted, names, message, nearest)


def _but(queue: Queue) -> str:
    sentences = [f"It is not for all: {queue.access}."] if queue.access else []
    return " ".join(sentences + (["Its jobs can be stopped for others."] if queue.preemptible else []))


def _closing(system: System, today: date | None) -> Iterator[SystemFinding]:
    if not system.closes or today is None:
        return
    end = date.fromisoformat(system.closes)
    if end <= today:
        yield SystemFinding("error", "system", "NAME", system.name, system.closes, f"{system.name} closed on {end}.")
    elif end - today <= SOON:
        yield SystemFinding("warning", "system", "NAME", system.name, system.closes, f"{system.name} closes on {end}.")


def _project(system: System, wish: Wish) -> SystemFinding:
    needed = {"always": "needed", "sometimes": system.project_when or "sometimes needed", "never": "not needed", "": ""}
    limit = needed[system.project_needed]
    if wish.project or system.project_needed == "never":
        return SystemFinding("ok", "project", "--project", wish.project or "not said", limit)
    if system.project_needed == "always":
        message = f"{system.name} runs nothing without a project to charge."
        return SystemFinding("error", "project", "--project", "not said", limit, message, "--project NAME")
    if system.project_needed == "sometimes":
        message = f"A project is sometimes needed: {limit}."
        return SystemFinding("warning", "project", "--project", "not said", limit, message)
    return SystemFinding("unknown", "project", "--project", "not said")


def _constraint(case: Case) -> Iterator[SystemFinding]:
    known = [kind.select.removeprefix("-C ") for kind in case.queue.nodes if kind.select.startswith("-C ")]
    wanted, limit = case.wish.constraint, ", ".join(known)
    if wanted:
        yield SystemFinding("ok" if wanted in known else "unknown", "constraint", "--constraint", wanted, limit)
    elif "constraint" in case.system.needs:
        able = [kind.select.removeprefix("-C ") for kind in case.fitting or case.with_cores if kind.select] or known
        message = f"{case.system.name} wants the sort of node to be named."
        nearest = ", or ".join(f"--constraint {name}" for name in able)
        yield SystemFinding("error", "constraint", "--constraint", "not said", limit, message, nearest)
    elif known:
        yield SystemFinding("ok", "constraint", "--constraint", "not said", limit)


def _elsewhere(case: Case, findings: Iterable[SystemFinding]) -> Iterator[SystemFinding]:
    """Add to each refused size the queues that would accept it, and to an oversized whole node the shared queues."""
    others = [queue for queue in takers(case.system, case.wish) if queue.name != case.queue.name]
    parts = [queue for queue in others if queue.sharing == "shared"] if case.queue.sharing == "whole" else []
    for finding in findings:
        better = others if finding.state == "error" and finding.field in _SIZES else []
        if finding.state == "warning" and finding.field in _PARTS:
            better = parts
        words = [finding.nearest] if finding.nearest else []
        words += [f"--queue {queue.name}" for queue in better[:2]]
        yield replace(finding, nearest=", or ".join(words))


def _not_known(wish: Wish) -> list[SystemFinding]:
    """Return findings of state unknown for the sizes of a wish, where the system's queues aren't known."""
    return [
        replace(finding, state="unknown", message="", nearest="")
        for finding in check_sizes(Case(System(""), Queue(""), wish))
    ]


def _options(system: System, wish: Wish) -> Iterator[SystemFinding]:
    limit = f"not {', '.join(system.refuses)}" if system.refuses else ""
    flag = "--option"
    for option in wish.options:
        name = option.partition("=")[0].strip()
        if name in system.refuses:
            yield SystemFinding(
                "error", "option", flag, option, limit, f"{system.name} refuses {name}.", "leave it out"
            )
        else:
            yield SystemFinding("ok", "option", flag, option, limit)
    missing = [
        need
        for need in system.needs
        if need not in ATTRIBUTES and not any(option.startswith(need) for option in wish.options)
    ]
    for need in missing:
        message = f"{system.name} wants {need}."
        yield SystemFinding("error", "option", flag, "not said", limit, message, f"--option '{need}=…'")
    if not (wish.options or missing):
        yield SystemFinding("ok", "option", flag, "none", limit)
