"""The short form that a person writes, turned into the full document."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sublet.booking.documents.inline import CONTENT, has_content, locate_content, read_location
from sublet.booking.documents.kinds import (
    MONETARY,
    NODE_COMPUTE,
    SIMPLE_COMPUTE,
    SIMPLE_COST,
    SIMPLE_DATA,
    SIMPLE_STORAGE,
    SIMPLE_VOLUME,
    uri_of,
)
from sublet.booking.documents.shapes import (
    AFTER,
    DEFAULT_DURATION,
    OUTPUTS,
    PLACES,
    TOP,
    WHERE,
    Document,
    one_shape,
    without_nulls,
)
from sublet.booking.model.amounts import MIB, duration_iso, parse_counts, parse_duration, parse_memories, quote_value
from sublet.booking.model.request import GIB, Range
from sublet.booking.model.shape import SIZES, WITHOUT_DISK
from sublet.booking.model.windows import parse_start
from sublet.kernel.document_fields import (
    a_list,
    a_map,
    a_name,
    a_number,
    a_text,
    at,
    decline,
    refuse,
    refuse_unknown_fields,
)
from sublet.kernel.errors import BadAmount
from sublet.kernel.value_names import directory_name, last_name

# What is to run: the field, and the kind that it makes.
EXECUTABLES = {
    "run": "command",
    "script": "command",
    "image": "docker-container",
    "notebook": "jupyter-notebook",
    "compose": "docker-compose",
    "bag": "bag",
    "steps": "steps",
    "interactive": "interactive",
    "app": "app",
}
# What else an executable of a kind may say, and its name in the full form.
_EXTRAS = {
    "command": {"env": "environment"},
    "docker-container": {"env": "environment", "entrypoint": "entrypoint", "tasks": "tasks"},
    "jupyter-notebook": {"env": "environment", "parameters": "parameters", "requirements": "requirements"},
    "docker-compose": {"env": "environment"},
    "bag": {"env": "environment"},
    "steps": {"env": "environment"},
    "interactive": {"env": "environment", "requirements": "requirements", "idle": "idle"},
    "app": {"parameters": "parameters", "version": "version", "tasks": "tasks"},
}
_STEPS = ("run", "together", "keep_going")
_STEP = ("name", "run", "env")
_BAG = ("tasks", "template", "grid", "table", "strict", "file", "retries", "parallel", "parts")
_ONLY_SHORT = frozenset(
    {*EXECUTABLES, *SIZES, "env", "time", "start", "max_cost", "web", "idle"}
    | {"parameters", "requirements", "entrypoint", "version", "tasks", "workdir"}
)
_ANYWHERE = frozenset({"version"})  # a schema may have it one day, and means something else
_SHARED = frozenset({"name", "description", "data", "storage", "volumes", AFTER, OUTPUTS, PLACES, *WHERE})
_ONLY_FULL = frozenset({"executable", "compute", "computer", "schedule", "resources", "request", "costs", "metrics"})
_OF_DATA = ("checksum", "size", "storage", "ignore", "unpack", "write_back")
_DATA = ("name", "location", *CONTENT, "path", "writable", *_OF_DATA)
_FOLDER = ("location", "ignore", "size")
_STORAGE = ("name", "size", "pool", "path", "writable")
AUTO = "auto"
WEB_FIELDS = ("command", "port")
ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_VOLUME = ("path", "resource", "writable")


def is_short(document: Mapping[str, Any]) -> bool:
    """Whether a document is in the short form."""
    return not _ONLY_SHORT.isdisjoint(document) and _ONLY_FULL.isdisjoint(document)


def full_document(document: Mapping[str, Any]) -> Document:
    """Any document, short, older or full, in the one full form."""
    return one_shape(_expand_environment(without_nulls(document)) if is_short(document) else _refuse_mixture(document))


def _refuse_mixture(document: Mapping[str, Any]) -> Mapping[str, Any]:
    if _ONLY_FULL.isdisjoint(document):  # neither form: a person mistyped it
        refuse_unknown_fields(without_nulls(document), TOP, "")
    mixed = (_ONLY_SHORT - _ANYWHERE) & without_nulls(document).keys()
    if mixed:
        full = ", ".join(sorted(_ONLY_FULL & document.keys()))
        decline(
            min(mixed), f"this field of the short form stands beside {full} of the full form", "Use one of the forms."
        )
    return document


def _expand_environment(short: Document) -> Document:
    refuse_unknown_fields(short, _ONLY_SHORT | _SHARED, "")
    kind, executable = _executable(short)
    volumes: list[Document] = []
    full: Document = {}
    if executable is not None:
        full["executable"] = executable
    inside = {"docker-container": "/", "app": "/job/"}.get(kind, "")  # where a container sees what is brought
    data = _folder(short, kind, volumes) + _data(short.get("data", []), inside, volumes, is_app=kind == "app")
    storage = _storage(short.get("storage", []), f"{inside}data/" if kind == "app" else inside, volumes)
    volumes += _volumes(short.get("volumes", []))
    full["compute"] = _compute(short, volumes)
    if kind == "app" and executable is not None and (amounts := plain_amounts(short, full["compute"])):
        executable["resources"] = amounts
    if data:
        full["data"] = data
    if storage:
        full["storage"] = storage
    full["schedule"] = {"requested": _read_requested(short)}
    if "max_cost" in short:
        most = a_number(short["max_cost"], "max_cost")
        full["costs"] = [{"kind": SIMPLE_COST, "type": MONETARY, "max": most}]
    return full | {name: short[name] for name in (*WHERE, AFTER, OUTPUTS, PLACES) if name in short}


def _executable(short: Document) -> tuple[str, Document | None]:
    if "web" in short:
        short = _web_application(short)
    given = [name for name in EXECUTABLES if name in short]
    if given == ["run", "image"]:
        given = ["image"]  # what to run in the image
    if given in (["image", "notebook"], ["image", "interactive"]):
        given = given[1:]  # the image that it runs in
    if len(given) > 1:
        refuse(given[1], f"there is {given[0]} too", "Say one thing to run.")
    kind = EXECUTABLES[given[0]] if given else ""
    extras = _EXTRAS.get(kind, {})
    for name in ("env", "entrypoint", "parameters", "requirements", "version", "tasks", "idle"):
        if name in short and name not in extras:
            refuse(name, f"{given[0] if given else 'nothing to run'} has no {name}", "Take it away.")
    if not given:
        return kind, None
    meta = {name: short[name] for name in ("name", "description") if name in short}
    fields = {extras[name]: short[name] for name in extras if name in short}
    if given[0] in ("notebook", "interactive") and "image" in short:
        fields["image"] = short["image"]
    fields |= {name: short[name] for name in WEB_FIELDS if "web" in short and name in short}
    what = _read_steps(short["steps"]) if given[0] == "steps" else _what(given[0], short)
    return kind, {"kind": uri_of("executable", kind), "meta": meta, **what, **fields}


def _read_steps(value: Any) -> Document:
    """A list of steps, or a map with it that says how they run; a step is words, or a map with `run`."""
    whole = {"run": value} if isinstance(value, list) else a_map(value, "steps")
    refuse_unknown_fields(whole, _STEPS, "steps")
    steps: list[Document] = []
    for number, step in enumerate(_items(whole.get("run", []), "steps")):
        where = f"steps[{number}]"
        known = {"run": step} if isinstance(step, str | list) else a_map(step, where)
        refuse_unknown_fields(known, _STEP, where)
        named = {"name": known["name"]} if "name" in known else {}
        variables = {"environment": known["env"]} if "env" in known else {}
        steps.append({**named, "argv": _words(known.get("run", []), f"{where}.run"), **variables})
    return {"steps": steps, **{name: whole[name] for name in ("together", "keep_going") if name in whole}}


def _web_application(short: Document) -> Document:
    """`web` beside what is run: a session that someone opens, on this port; `auto`: on one that it is told."""
    port = short["web"]
    is_told = port is True or port == AUTO
    if not is_told and (type(port) is not int or not 0 < port < 65536):
        refuse("web", f"{quote_value(port)} is not a port", "Write a number from 1 to 65535, or auto.")
    rest = {name: value for name, value in short.items() if name != "run"}
    words = {"command": _words(short["run"], "run")} if "run" in short else {}
    return rest | words | {"interactive": "web"} | ({} if is_told else {"port": port})


def _what(given: str, short: Document) -> Document:
    value = short[given]
    if given == "run":
        return {"argv": _words(value, "run")}
    if given in ("script", "compose"):
        return {given: value}
    if given == "notebook":
        return {"location": a_text(value, "notebook", 4096)}
    if given == "app":
        return {"app": a_name(value, "app")}
    if given == "interactive":
        return {"interface": "lab" if value is True else a_text(value, "interactive")}
    if given == "image":
        image = {"locations": [value]} if isinstance(value, str) else value
        return {"image": image} | ({"command": _words(short["run"], "run")} if "run" in short else {})
    if isinstance(value, list):
        value = {"tasks": value}
    refuse_unknown_fields(a_map(value, "bag"), _BAG, "bag")
    bag = dict(value)
    if "tasks" in bag:
        bag["tasks"] = [_task(task, f"bag.tasks[{i}]") for i, task in enumerate(_items(bag["tasks"], "bag.tasks"))]
    if "template" in bag:
        bag["template"] = _words(bag["template"], "bag.template")
    return bag


def _items(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(path, f"{quote_value(value)} is not a list", "Write one item a line, each after a dash.")
    return value


def _task(task: Any, path: str) -> Any:
    return (
        dict(task) | {"argv": _words(task.get("argv"), f"{path}.argv")}
        if isinstance(task, Mapping)
        else _words(task, path)
    )


def _words(value: Any, path: str) -> list[str]:
    """A command line as its words; a number that stands alone is a word too."""
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            refuse(path, f"{quote_value(value)} can't be split into words: {error}", "Write it as a list of words.")
        if not words:
            refuse(path, "there is nothing to run")
        return words
    return [_word(word, f"{path}[{i}]") for i, word in enumerate(_items(value, path))]


def _word(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        refuse(path, f"{quote_value(value)} is not a word", "Put it in quotes.")
    return str(value)


def _compute(short: Document, volumes: list[Document]) -> Document:
    compute: Document = {"kind": SIMPLE_COMPUTE}
    for name in ("nodes", "cores", "gpus"):
        if name in short:
            least = 0 if name == "gpus" else 1
            counts = at(name, parse_counts, short[name], f"a number of {name}", least)
            compute[name] = {"min": counts.min, "max": counts.max}
    whole = True
    if "memory" in short:
        sizes = at("memory", _sizes, short["memory"])
        whole = sizes.min % GIB == 0 and sizes.max % GIB == 0
        compute["memory"] = {"min": _amount(sizes.min), "max": _amount(sizes.max)}
    if "disk" in short:
        sizes = at("disk", _sizes, short["disk"])
        compute["disk"] = {"min": _amount(sizes.min), "max": _amount(sizes.max)}
    if "start" in short:
        _check_starts(short["start"])
        if not _is_interval(short["start"]):
            compute["starts"] = short["start"] if isinstance(short["start"], list) else [short["start"]]
    if "starts" in compute or not whole or "nodes" in compute or "gpus" in compute or "disk" in compute:
        compute["kind"] = NODE_COMPUTE
    if volumes:
        compute["volumes"] = volumes
    return compute


def plain_amounts(short: Mapping[str, Any], compute: Mapping[str, Any]) -> Document:
    """The single amounts that were said, by the names that an app's manifest has: there the least counts too."""
    amounts = {
        name: short[name]
        for name in ("nodes", *WITHOUT_DISK)
        if name in short and compute[name]["min"] == compute[name]["max"]
    }
    return amounts | ({"time": short["time"]} if "time" in short else {})


def _sizes(value: Any) -> Range:
    if not isinstance(value, str):
        raise BadAmount(text=quote_value(value), what="an amount of memory", example=_with_unit(value))
    return parse_memories(value)


def _with_unit(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "8GiB"
    return f"{value}GiB" if value < MIB else f"{value / MIB:g}MiB, if those are bytes"


def _amount(size: int) -> int | str:
    """IVOA counts GiB; what isn't whole is written with its unit."""
    if size % GIB == 0:
        return size // GIB
    return f"{size // MIB}MiB" if size % MIB == 0 else f"{size}B"


def _check_starts(start: Any) -> None:
    """A mistake is named where the person made it; the times are read when the request is."""
    several = isinstance(start, list)
    for i, text in enumerate(start if several else [start]):
        path = f"start[{i}]" if several else "start"
        at(path, parse_start, a_text(text, path), ANY_DAY)


def _is_interval(start: Any) -> bool:
    """Whether IVOA's one field can carry it; words, and several windows, travel in the compute resource."""
    return isinstance(start, str) and "/" in start and len(start.split()) == 1


def _read_requested(short: Document) -> Document:
    time = short.get("time", DEFAULT_DURATION)
    number = isinstance(time, int | float) and not isinstance(time, bool)
    length = at("time", parse_duration, str(time) if number else a_text(time, "time"))
    requested: Document = {"duration": duration_iso(length)}
    if _is_interval(short.get("start")):
        requested["start"] = short["start"]
    return requested


def _folder(short: Document, kind: str, volumes: list[Document]) -> list[Document]:
    """The folder whose content the session finds in its working directory."""
    if "workdir" not in short:
        return []
    if kind == "app":
        refuse("workdir", "an app has a working directory of its own", "Bring its inputs with data.")
    value = short["workdir"]
    given = {"location": value} if isinstance(value, str) else without_nulls(a_map(value, "workdir"))
    refuse_unknown_fields(given, _FOLDER, "workdir")
    location = a_text(given.get("location"), "workdir.location", 4096)
    volumes.append({"kind": SIMPLE_VOLUME, "path": ".", "mode": "READWRITE", "resource": "workdir"})
    document = {"kind": SIMPLE_DATA, "meta": {"name": "workdir"}, "location": location}
    return [document | {name: given[name] for name in ("ignore", "size") if name in given}]


def _data(value: Any, inside: str, volumes: list[Document], *, is_app: bool) -> list[Document]:
    """Data lands where it says, else below `data/` if it has a name, else in the working directory, as it is called."""
    documents = []
    taken: set[str] = {"workdir"}
    for i, item in enumerate(a_list([value] if isinstance(value, str | Mapping) else value, "data")):
        path = f"data[{i}]"
        given = {"location": item} if isinstance(item, str) else without_nulls(a_map(item, path))
        refuse_unknown_fields(given, _DATA, path)
        if has_content(given):
            given = {"writable": True} | given | {"location": locate_content(given, path)}
        location = read_location(given.get("location"), f"{path}.location")
        name = a_name(given["name"], f"{path}.name") if "name" in given else _name_of(location, taken)
        taken.add(name)
        extras = {key: given[key] for key in _OF_DATA if key in given}
        given = ({"writable": True} if given.get("write_back") is True else {}) | given
        documents.append({"kind": SIMPLE_DATA, "meta": {"name": name}, "location": location} | extras)
        if is_app or not {"name", "path", "storage"}.isdisjoint(given):
            volumes.append(_volume(given, f"{inside}data/{directory_name(name)}", name, path))
        else:
            own_name = name if given.get("unpack") is True else last_name(location) or name
            volumes.append(_volume({"writable": True} | given, own_name, name, path))
        _check_apart(volumes, path)
    return documents


def _check_apart(volumes: list[Document], path: str) -> None:
    """Two things can't be in one place."""
    where = str(volumes[-1]["path"]).rstrip("/")
    for other in volumes[:-1]:
        if str(other["path"]).rstrip("/") == where:
            hint = "Say where each goes: {location: …, path: …}, or --data WHERE:PATH."
            refuse(path, f"it would be at {where}, where {other['resource']} is already", hint)


def _name_of(location: str, taken: set[str]) -> str:
    """`https://…/cube.tar.gz` is called cube."""
    stem = directory_name(last_name(location).lstrip(".").partition(".")[0])
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def _storage(value: Any, inside: str, volumes: list[Document]) -> list[Document]:
    """Room of a size; it is seen, and can be written, in a directory of its name."""
    items = [value] if isinstance(value, str | Mapping) else a_list(value, "storage")
    documents = []
    for i, item in enumerate(items):
        path = f"storage[{i}]"
        given = {"size": item} if isinstance(item, str) else without_nulls(a_map(item, path))
        refuse_unknown_fields(given, _STORAGE, path)
        name = a_name(given["name"], f"{path}.name") if "name" in given else f"storage-{i + 1}"
        if "size" not in given:
            refuse(f"{path}.size", "it is missing", "Write how much room there should be: 10GiB.")
        sizes = at(f"{path}.size", _sizes, given["size"])
        bounds = {"min": _amount(sizes.min), "max": _amount(sizes.max)}
        pool = {"pool": given["pool"]} if "pool" in given else {}
        documents.append({"kind": SIMPLE_STORAGE, "meta": {"name": name}, "size": bounds, **pool})
        volumes.append(_volume({"writable": True} | given, f"{inside}{directory_name(name)}", name, path))
    return documents


def _volumes(value: Any) -> list[Document]:
    documents = []
    for i, item in enumerate(a_list(value, "volumes")):
        path = f"volumes[{i}]"
        given = without_nulls(a_map(item, path))
        refuse_unknown_fields(given, _VOLUME, path)
        if "resource" not in given or "path" not in given:
            refuse(path, "a volume needs resource and path", "Write {resource: cube, path: input}.")
        documents.append(_volume(given, "", given["resource"], path))
    return documents


def _volume(given: Document, otherwise: str, resource: str, path: str) -> Document:
    writable = given.get("writable", False)
    if not isinstance(writable, bool):
        refuse(f"{path}.writable", f"{quote_value(writable)} is not true or false")
    mode = "READWRITE" if writable else "READONLY"
    return {"kind": SIMPLE_VOLUME, "path": given.get("path", otherwise), "mode": mode, "resource": resource}
