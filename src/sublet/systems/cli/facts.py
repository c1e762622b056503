"""A full description of a system for people: its facts in groups, with their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from sublet.cli.output import pairs, table
from sublet.cli.texts import length, size
from sublet.systems.model.system import NodeKind, Queue, Source, System, Tool, age

KINDS = {
    "official": "the centre",
    "copy": "a copy of the centre's",
    "configuration": "others' settings",
    "notes": "users",
    "live": "the system itself",
}
OUTBOUND = {"open": "reached", "closed": "not reached", "proxy": "reached by a proxy only", "": "not known"}


def describe_system(system: System, today: date) -> list[str]:
    """Describe everything known about a system, as lines of text."""
    return [
        *pairs(_general(system, today)),
        *_group("Login", _login(system)),
        *_group("Scheduler", _scheduler(system)),
        *_group("Compute nodes and the internet", _network(system)),
        *_group("Tools", ((tool.name, _tool(tool)) for tool in system.tools)),
        *_group("Where things are", _places(system)),
        *_group("Files", (*system.files.items(), _describe_source(system, "files"))),
        *_queues(system.queues),
        *_nodes(system.queues),
        *_group("In doubt", (("-", doubt) for doubt in system.doubts)),
        *_group("Sources", ((source.name, _source(source)) for source in system.sources)),
    ]


def _group(title: str, items: Iterable[tuple[str, str]]) -> list[str]:
    lines = pairs(items, margin="  ")
    return ["", title, *lines] if lines else []


def _general(system: System, today: date) -> Iterator[tuple[str, str]]:
    yield "system", f"{system.name}: {system.title}" if system.title else system.name
    yield "centre", ", ".join(part for part in (system.centre, system.country) if part)
    yield "guide", system.guide
    yield "closes", system.closes
    yield "looked at", f"{system.looked_at}, {age(system.looked_at, today)}" if system.looked_at else ""
    yield "how sure", system.sure
    yield "like", system.like
    yield "your own", ", ".join(path for path in system.own if path != "like")


def _login(system: System) -> Iterator[tuple[str, str]]:
    yield "hosts", ", ".join(system.hosts) or system.alias
    yield "port", str(system.port or "")
    yield "user", system.user
    yield "jump host", system.jump
    yield "for files", ", ".join(system.transfer_hosts)
    yield "ways in", ", or ".join(system.ways)
    yield "second factor", ", ".join(part for part in (system.second_factor or "not known", system.factor) if part)
    yield "certificates", f"good for {length(system.certificate)}" if system.certificate else ""
    yield "connections", "" if system.shares_connections else "each signs in anew: sharing one is forbidden"
    yield "note", system.notes.get("login", "")
    yield _describe_source(system, "login")


def _scheduler(system: System) -> Iterator[tuple[str, str]]:
    yield "kind", " ".join(part for part in (system.scheduler, system.version) if part)
    yield "project", ", ".join(part for part in (system.project, _describe_needs(system)) if part)
    yield "queue", system.queue
    yield "constraint", system.constraint
    yield "default queue", system.default_queue
    yield "must be said", ", ".join(system.needs)
    yield "refuses", ", ".join(system.refuses)
    yield "note", system.notes.get("scheduler", "")
    yield _describe_source(system, "scheduler")


def _describe_needs(system: System) -> str:
    words = {"always": "always needed", "sometimes": "sometimes needed", "never": "not needed", "": ""}
    return " ".join(
        part for part in (words[system.project_needed], system.project_when and f"({system.project_when})") if part
    )


def _network(system: System) -> Iterator[tuple[str, str]]:
    leaning = f", probably {OUTBOUND[system.leaning]}" if system.leaning else ""
    yield "internet", OUTBOUND[system.outbound] + leaning
    yield "proxy", system.proxy
    yield "note", system.notes.get("network", "")
    yield _describe_source(system, "network")


def _places(system: System) -> Iterator[tuple[str, str]]:
    yield "sessions", system.directory
    yield "scratch", system.scratch
    yield "modules", ", ".join(system.modules)
    yield "tools", ", ".join(system.path)
    yield "site's file", system.site_file
    yield "queue asked", f"every {length(system.poll)}" if system.poll else ""
    yield "records read", f"every {length(system.look)}" if system.look else ""
    yield "seen here", ", ".join(f"{there} as {here}" for there, here in system.mounts.items())


def _describe_source(system: System, group: str) -> tuple[str, str]:
    dates = {source.name: source.date for source in system.sources}
    return "says", ", ".join(f"{name} ({dates[name]})" for name in system.sourced.get(group, ()))


def _tool(tool: Tool) -> str:
    parts = [tool.version, f"in the module {tool.module}" if tool.module else "", tool.notes]
    return (", ".join(part for part in parts if part) or "there") + _by(tool.sources)


def _by(sources: tuple[str, ...]) -> str:
    return f" ({', '.join(sources)})" if sources else ""


def _queues(queues: tuple[Queue, ...]) -> list[str]:
    head = ("NAME", "FOR", "NODES", "TIME", "SHARING", "ON EACH NODE", "TOGETHER", "CHARGE", "SAYS")
    rows = [
        (
            queue.name,
            "; ".join(part for part in (queue.purpose, queue.access) if part),
            _span(queue.min_nodes, queue.max_nodes),
            _times(queue),
            queue.sharing,
            ", ".join(kind.name for kind in queue.nodes),
            _quotas(queue),
            ", ".join(f"{charge.factor:g} {charge.unit}" for charge in queue.charges[:1]),
            ", ".join(queue.sources),
        )
        for queue in queues
    ]
    notes = [f"  {queue.name}: {note}" for queue in queues for note in _notes(queue)]
    return ["", "Queues", *table(head, rows, least=("SAYS", "CHARGE", "TOGETHER"), margin="  "), *notes] if rows else []


def _notes(queue: Queue) -> Iterator[str]:
    steps = ", ".join(f"{s.min_nodes}-{s.max_nodes} nodes {length(s.time)}" for s in queue.time_by_nodes)
    sizes = (("min_cores", "at least {} cores"), ("max_cores", "at most {} cores"), ("max_gpus", "at most {} GPUs"))
    of_a_job = [words.format(getattr(queue, name)) for name, words in sizes if getattr(queue, name)]
    of_a_job += [f"at least {size(queue.min_memory)}"] if queue.min_memory else []
    yield from (
        text
        for text in (
            f"chosen by {' '.join(queue.options)}" if queue.options else "",
            f"time by nodes: {steps}" if steps else "",
            f"a job has {', '.join(of_a_job)}" if of_a_job else "",
            "jobs can be stopped for others" if queue.preemptible else "",
            "; ".join(f"{charge.factor:g} {charge.unit} on {charge.node}" for charge in queue.charges if charge.node),
            queue.notes,
        )
        if text
    )


def _times(queue: Queue) -> str:
    return _span(queue.min_time and length(queue.min_time), queue.max_time and length(queue.max_time))


def _span(least: object, most: object) -> str:
    return f"{least} to {most}" if least and most else f"{most}" if most else f"from {least}" if least else ""


def _quotas(queue: Queue) -> str:
    whose: dict[str, list[str]] = {}
    for quota in queue.quotas:
        amount = size(quota.most) if quota.what == "memory" else _amount(quota.most, quota.what)
        whose.setdefault(quota.per, []).append(amount)
    return "; ".join(f"{', '.join(amounts)}{f' per {per}' if per else ''}" for per, amounts in whose.items())


def _amount(count: int, what: str) -> str:
    return f"{count} {what.removesuffix('s') if count == 1 and what in ('nodes', 'cores') else what}"


def _nodes(queues: tuple[Queue, ...]) -> list[str]:
    kinds = {kind.name: kind for queue in queues for kind in queue.nodes}
    return _group("Nodes", ((name, _node(kind)) for name, kind in kinds.items()))


def _node(kind: NodeKind) -> str:
    gpu_memory = f" of {size(kind.gpu_memory)}" if kind.gpu_memory else ""
    memory = f"{size(kind.usable)} of memory" if kind.usable else ""
    parts = [
        f"{kind.cores} cores" if kind.cores else "",
        memory or (f"{size(kind.memory)} of memory, nominally" if kind.memory else ""),
        f"{kind.gpus or 'some'} {kind.gpu}{gpu_memory}" if kind.gpu else "",
        f"disk {kind.disk}" if kind.disk else "",
        kind.arch,
        f"{kind.count} of them" if kind.count else "",
        f"chosen by {kind.select}" if kind.select else "",
        kind.notes,
    ]
    return ", ".join(part for part in parts if part) + _by(kind.sources)


def _source(source: Source) -> str:
    dated = f"read {source.date}, undated" if source.undated else source.date
    where = (
        source.link or source.file or ("probed" if source.kind == "live" else "can't be cited: check with the centre")
    )
    return ", ".join(part for part in (f"{KINDS[source.kind]}, {dated}: {where}", source.notes) if part)
