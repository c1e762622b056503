"""From the plain values of a system's file to a `System`, checking every field and number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.systems.fields import (
    BadField,
    Path,
    Read,
    count,
    counts,
    day,
    duration,
    each,
    fields,
    flag,
    items,
    memory,
    number,
    one_of,
    plain_name,
    some_day,
    text,
    texts,
    word,
    words,
)
from sublet.systems.model.pilot_config import check_lines
from sublet.systems.model.system import Charge, NodeKind, Queue, Quota, Source, System, TimeStep, Tool

UNSTATED = "unstated"  # quotas whose scope no source states
_OFTEN = one_of("always", "sometimes", "never")
_OUTBOUND = one_of("open", "closed", "proxy")

SOURCE: dict[str, Read] = {
    "kind": one_of("official", "copy", "configuration", "notes", "live"),
    "date": some_day,
    "link": text,
    "file": text,
    "undated": flag,
    "notes": text,
}
LOGIN: dict[str, Read] = {
    "hosts": words,
    "alias": text,
    "jump": word,
    "transfer_hosts": words,
    "ways": texts,
    "second_factor": _OFTEN,
    "factor": text,
    "certificate": duration,
    "shares_connections": flag,
    "notes": text,
    "source": texts,
}
SCHEDULER: dict[str, Read] = {
    "kind": plain_name,
    "version": text,
    "project": _OFTEN,
    "project_when": text,
    "default_queue": text,
    "needs": texts,
    "refuses": texts,
    "notes": text,
    "source": texts,
}
NETWORK: dict[str, Read] = {
    "outbound": _OUTBOUND,
    "leaning": _OUTBOUND,
    "proxy": text,
    "notes": text,
    "source": texts,
}
TOOL: dict[str, Read] = {"name": text, "module": text, "version": text, "notes": text, "source": texts}
NODE: dict[str, Read] = {
    "cores": count,
    "memory": memory,
    "usable": memory,
    "gpus": count,
    "gpu": text,
    "gpu_memory": memory,
    "disk": text,
    "count": count,
    "arch": text,
    "select": text,
    "notes": text,
    "source": texts,
}
QUOTA: dict[str, Read] = {
    "nodes": count,
    "cores": count,
    "gpus": count,
    "memory": memory,
    "running": count,
    "submitted": count,
}
STEP: dict[str, Read] = {"nodes": counts, "time": duration}
CHARGE: dict[str, Read] = {"factor": number, "unit": text, "node": text}


def read_system(name: str, document: Mapping[str, Any]) -> System:
    """Read the system that a file describes; raise BadField if a value isn't valid."""
    values = fields(document, (), SYSTEM)
    kinds = {kind.name: kind for kind in values.pop("nodes", ())}
    groups = {group: values.pop(group, {}) for group in ("login", "scheduler", "network")}
    scheduler = groups["scheduler"]
    flat: dict[str, Any] = {
        **{key: value for key, value in groups["login"].items() if key not in ("notes", "source")},
        **{key: value for key, value in groups["network"].items() if key not in ("notes", "source")},
        **{
            key: scheduler[key]
            for key in ("version", "project_when", "default_queue", "needs", "refuses")
            if key in scheduler
        },
        "scheduler": scheduler.get("kind", ""),
        "project_needed": scheduler.get("project", ""),
        "notes": {group: given["notes"] for group, given in groups.items() if "notes" in given},
        "sourced": {group: given["source"] for group, given in groups.items() if "source" in given},
    }
    files = values.pop("files", {})
    if "source" in files:
        flat["sourced"]["files"] = tuple(part.strip() for part in files["source"].split(","))
    flat["files"] = {role: where for role, where in files.items() if role != "source"}
    flat["queues"] = tuple(_with_kinds(queue, kinds, index) for index, queue in enumerate(values.pop("queues", ())))
    system = System(name, **{**values, **flat})
    _check_whole(system)
    return system


def check_fields(document: Mapping[str, Any]) -> None:
    """Check each field's name and value; raise BadField if one isn't valid."""
    fields(document, (), SYSTEM)


def _source(value: Any, path: Path) -> tuple[Source, ...]:
    read = []
    for name, given in each(value, path).items():
        values = fields(given, (*path, name), SOURCE)
        if missing := {"kind", "date"} - values.keys():
            raise BadField((*path, name), f"a source needs its {' and its '.join(sorted(missing))}.")
        read.append(Source(name, **values))
    return tuple(read)


def _nodes(value: Any, path: Path) -> tuple[NodeKind, ...]:
    return tuple(
        NodeKind(name, **_rename_source(fields(given, (*path, name), NODE)))
        for name, given in each(value, path).items()
    )


def _tools(value: Any, path: Path) -> tuple[Tool, ...]:
    return tuple(
        Tool(**_rename_source(_read_named(fields(given, (*path, index), TOOL), (*path, index))))
        for index, given in enumerate(items(value, path))
    )


def _files(value: Any, path: Path) -> dict[str, str]:
    places = dict(each(value, path))
    source = {"source": ",".join(texts(places.pop("source"), (*path, "source")))} if "source" in places else {}
    return {role: text(where, (*path, role)) for role, where in places.items()} | source


def _queues(value: Any, path: Path) -> tuple[dict[str, Any], ...]:
    read, names = [], set()
    for index, given in enumerate(items(value, path)):
        values = _read_named(fields(given, (*path, index), QUEUE), (*path, index))
        if values["name"] in names:
            raise BadField((*path, index, "name"), f"the queue {values['name']} is there twice.")
        names.add(values["name"])
        for low, high in (("min_nodes", "max_nodes"), ("min_time", "max_time"), ("min_cores", "max_cores")):
            if low in values and high in values and values[low] > values[high]:
                raise BadField((*path, index, low), f"it is more than {high}.")
        read.append(values)
    return tuple(read)


def _steps(value: Any, path: Path) -> tuple[TimeStep, ...]:
    read: list[TimeStep] = []
    for index, given in enumerate(items(value, path)):
        values = fields(given, (*path, index), STEP)
        if len(values) < len(STEP):
            raise BadField((*path, index), "a step needs its nodes and its time: {nodes: 1-91, time: 2h}.")
        step = TimeStep(values["nodes"].min, values["nodes"].max, values["time"])
        if read and step.min_nodes <= read[-1].max_nodes:
            raise BadField((*path, index, "nodes"), "it begins before the step above it ends.")
        read.append(step)
    return tuple(read)


def _ssh(value: Any, path: Path) -> dict[str, str]:
    return {name: text(given, (*path, name)) for name, given in each(value, path).items()}


def _mounts(value: Any, path: Path) -> dict[str, str]:
    mounts = {there: text(here, (*path, there)) for there, here in each(value, path).items()}
    for there, here in mounts.items():
        if not (there.startswith("/") and here.startswith("/")):
            raise BadField((*path, there), "a path there and one here, both from the root: {/home: /mnt/home}.")
    return mounts


def _pilot(value: Any, path: Path) -> tuple[str, ...]:
    lines = texts(value, path)
    for index, line in enumerate(lines):
        if problems := check_lines([line]):
            raise BadField((*path, index), f"{problems[0]}.")
    if problems := check_lines(lines):
        raise BadField(path, f"{problems[0]}.")
    return lines


def _quotas(value: Any, path: Path) -> tuple[Quota, ...]:
    return tuple(
        Quota("" if per == UNSTATED else per, what, most)
        for per, given in fields(value, path, dict.fromkeys(("user", "project", "group", UNSTATED), _quota)).items()
        for what, most in given.items()
    )


def _quota(value: Any, path: Path) -> dict[str, Any]:
    return fields(value, path, QUOTA)


def _charges(value: Any, path: Path) -> tuple[Charge, ...]:
    read = []
    for index, given in enumerate(items(value, path)):
        where = (*path, index) if isinstance(value, list) else path
        values = fields(given, where, CHARGE)
        if missing := {"factor", "unit"} - values.keys():
            raise BadField(where, f"a charge needs its {' and its '.join(sorted(missing))}.")
        read.append(Charge(**values))
    return tuple(read)


def _read_named(values: dict[str, Any], path: Path) -> dict[str, Any]:
    if "name" not in values:
        raise BadField(path, "it has no name.")
    return values


def _rename_source(values: dict[str, Any]) -> dict[str, Any]:
    """Rename `source` and `charge`, which are singular in files, to the plural names of the values."""
    names = {"source": "sources", "charge": "charges"}
    return {names.get(key, key): value for key, value in values.items()}


def _with_kinds(values: dict[str, Any], kinds: Mapping[str, NodeKind], index: int) -> Queue:
    names = values.pop("node", ())
    for name in names:
        if name not in kinds:
            raise BadField(("queues", index, "node"), f"there is no {name} among the nodes.")
    return Queue(**_rename_source(values), nodes=tuple(kinds[name] for name in names))


def _check_whole(system: System) -> None:
    known = {source.name for source in system.sources}
    used: list[tuple[Path, tuple[str, ...]]] = [
        (("queues", index), queue.sources) for index, queue in enumerate(system.queues)
    ]
    used += [(("tools", index), tool.sources) for index, tool in enumerate(system.tools)]
    used += [((group,), names) for group, names in system.sourced.items()]
    used += [(("nodes", kind.name), kind.sources) for queue in system.queues for kind in queue.nodes]
    for path, names in used:
        if unknown := set(names) - known:
            raise BadField((*path, "source"), f"there is no {min(unknown)} among the sources.")
    if system.queues and system.default_queue and system.find_queue(system.default_queue) is None:
        raise BadField(("scheduler", "default_queue"), f"there is no queue {system.default_queue}.")


QUEUE: dict[str, Read] = {
    "name": text,
    "purpose": text,
    "options": texts,
    "access": text,
    "sharing": one_of("whole", "shared", "slice"),
    "node": texts,
    "min_nodes": count,
    "max_nodes": count,
    "min_time": duration,
    "max_time": duration,
    "time_by_nodes": _steps,
    "min_cores": count,
    "max_cores": count,
    "max_gpus": count,
    "min_memory": memory,
    "quotas": _quotas,
    "charge": _charges,
    "preemptible": flag,
    "notes": text,
    "source": texts,
}


def _settings(value: Any, path: Path) -> dict[str, Any]:
    """Read a platform's settings, which the platform checks itself."""
    return dict(each(value, path))


SYSTEM: dict[str, Read] = {
    "like": text,
    "title": text,
    "centre": text,
    "country": text,
    "guide": text,
    "closes": day,
    "looked_at": day,
    "sure": text,
    "login": lambda value, path: fields(value, path, LOGIN),
    "scheduler": lambda value, path: fields(value, path, SCHEDULER),
    "network": lambda value, path: fields(value, path, NETWORK),
    "tools": _tools,
    "files": _files,
    "nodes": _nodes,
    "queues": _queues,
    "doubts": texts,
    "sources": _source,
    "user": word,
    "key": text,
    "port": count,
    "project": word,
    "queue": word,
    "constraint": word,
    "directory": text,
    "scratch": text,
    "modules": words,
    "path": texts,
    "options": texts,
    "pilot": _pilot,
    "site_file": text,
    "poll": duration,
    "look": duration,
    "ssh": _ssh,
    "mounts": _mounts,
    "settings": _settings,
}
