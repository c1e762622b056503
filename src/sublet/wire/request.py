"""A request's document, read: every field checked, every default filled in, every link between resources resolved."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sublet.core.amounts import gib, parse_count, parse_duration, parse_memory, shown
from sublet.core.request import (
    GIB,
    Compute,
    Data,
    Executable,
    Limit,
    Range,
    Recurring,
    Request,
    Storage,
    Volume,
    Window,
)
from sublet.core.windows import parse_start
from sublet.errors import BadAmount
from sublet.wire.fields import a_list, a_map, a_name, a_number, a_text, at, known_only, refuse
from sublet.wire.kinds import short_name
from sublet.wire.shapes import AFTER, COMMON, WHERE, Document
from sublet.wire.short import full_document

MOST_WINDOWS = 100
MOST_LINE = 4096
MOST_AFTER = 100
_COMPUTE = COMMON | {"nodes", "cores", "memory", "gpus", "volumes", "starts"}
_STORAGE = COMMON | {"size", "data"}
_VOLUME = COMMON | {"path", "mode", "resource"}
_ANY_DATA = COMMON | {"storage"}
_DATA = {
    "simple-data-resource": _ANY_DATA | {"location", "size", "checksum", "ignore"},
    "S3-data-resource": _ANY_DATA | {"endpoint", "template", "bucket", "object"},
    "rucio-data-resource": _ANY_DATA | {"rucio"},
    "ivoa-data-resource": _ANY_DATA | {"ivoa"},
    "skao-data-resource": _ANY_DATA | {"ivoa", "skao"},
}
_DATA_READ = COMMON | {"storage", "location", "size", "checksum"}
_BOUND = COMMON | {"type", "min", "max", "units"}
_COMPUTE_KINDS = ("simple-compute-resource", "node-compute-resource")
_READ_ONLY = {"READONLY": True, "RO": True, "READWRITE": False, "RW": False}
_A_GIB = Range(GIB, GIB)
_NO_GPUS = Range(0, 0)
_ONE = Range(1, 1)


def read_request(document: Mapping[str, Any], now: datetime) -> Request:
    """The request in a document of any form; BadRequest names the field that can't be understood."""
    shape = full_document(document)
    names = _Names()
    storage, data = _linked(
        [_storage(item, f"storage[{i}]", i, names) for i, item in enumerate(shape.get("storage", ()))],
        [_data(item, f"data[{i}]", i, names) for i, item in enumerate(shape.get("data", ()))],
        names,
    )
    requested = shape["schedule"]["requested"]
    windows, recurring = _starts(requested.get("start"), shape["compute"].get("starts"), now)
    where: dict[str, Any] = {name: a_name(shape[name], name) for name in WHERE if name in shape}
    return Request(
        executable=_executable(shape["executable"]) if "executable" in shape else None,
        compute=_compute(shape["compute"], names),
        storage=storage,
        data=data,
        duration=_duration(requested["duration"], "schedule.requested.duration", timedelta(seconds=1)),
        windows=windows,
        recurring=recurring,
        costs=_limits(shape, "costs"),
        metrics=_limits(shape, "metrics"),
        after=_after(shape.get(AFTER, ())),
        **where,
    )


def _after(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else a_list(value, AFTER)
    if len(names) > MOST_AFTER:
        refuse(AFTER, f"there are {len(names)} sessions", f"At most {MOST_AFTER} are read.")
    return tuple(dict.fromkeys(a_name(name, f"{AFTER}[{i}]") for i, name in enumerate(names)))


class _Names:
    """What resources are called, by name or uuid."""

    def __init__(self) -> None:
        self._called: dict[str, str] = {}

    def add(self, meta: Mapping[str, Any], path: str, otherwise: str) -> str:
        name = a_name(meta["name"], f"{path}.meta.name") if "name" in meta else otherwise
        called = [name] if meta.get("uuid") in (None, name) else [name, a_name(meta["uuid"], f"{path}.meta.uuid")]
        for each in called:
            if each in self._called:
                refuse(f"{path}.meta.name", f"another resource is called {shown(each)} too", "Names must differ.")
            self._called[each] = name
        return name

    def find(self, value: Any, path: str) -> str:
        wanted = a_name(value, path)
        if wanted not in self._called:
            close = difflib.get_close_matches(wanted, self._called, 1)
            there = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(self._called) or 'none'}."
            refuse(path, f"there is no data or storage called {shown(wanted)}", there)
        return self._called[wanted]


def _kind(found: Mapping[str, Any], path: str, otherwise: str = "") -> str:
    if "kind" not in found and not otherwise:
        refuse(f"{path}.kind", "it is missing", "Say what kind of thing it is, by its URI or its short name.")
    return short_name(a_text(found["kind"], f"{path}.kind")) if "kind" in found else otherwise


def _executable(found: Document) -> Executable:
    kind = _kind(found, "executable")
    meta = found["meta"]
    name = a_name(meta["name"], "executable.meta.name") if "name" in meta else ""
    return Executable(kind, name, {field: value for field, value in found.items() if field not in COMMON})


def _compute(found: Document, names: _Names) -> Compute:
    kind = _kind(found, "compute")
    if kind not in _COMPUTE_KINDS:
        return Compute(kind=kind)
    known_only(found, _COMPUTE, "compute")
    meta = found["meta"]
    volumes = found.get("volumes", ())
    return Compute(
        name=a_name(meta["name"], "compute.meta.name") if "name" in meta else "compute",
        nodes=_counts(found, "nodes", _ONE),
        cores=_counts(found, "cores", _ONE),
        memory=_sizes(found["memory"], "compute.memory", _A_GIB),
        gpus=_counts(found, "gpus", _NO_GPUS),
        volumes=tuple(_volume(item, f"compute.volumes[{i}]", i, names) for i, item in enumerate(volumes)),
        kind=kind,
    )


def _counts(found: Document, name: str, default: Range) -> Range:
    bounds = found.get(name)
    if not bounds:
        return default
    path, least = f"compute.{name}", default.min
    what = f"a number of {name}"
    high = at(f"{path}.max", parse_count, bounds["max"], what, least)
    low = at(f"{path}.min", parse_count, bounds["min"], what, least) if "min" in bounds else min(default.max, high)
    return _ordered(low, high, path)


def _sizes(bounds: Mapping[str, Any], path: str, default: Range) -> Range:
    if not bounds:
        return default
    high = at(f"{path}.max", _size, bounds["max"])
    low = at(f"{path}.min", _size, bounds["min"]) if "min" in bounds else min(default.min, high)
    return _ordered(low, high, path)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return parse_memory(value)
    if not isinstance(value, int | float):
        raise BadAmount(text=shown(value), what="an amount of memory", example="a number of GiB, or text like 512MiB")
    return gib(value)


def _ordered(low: int, high: int, path: str) -> Range:
    if low > high:
        refuse(path, f"its min {low} is more than its max {high}", "Write the smaller one as min.")
    return Range(low, high)


def _volume(found: Document, path: str, index: int, names: _Names) -> Volume:
    kind = _kind(found, path, "simple-volume-mount")
    if kind == "simple-volume-mount":
        known_only(found, _VOLUME, path)
    name = a_name(found["meta"]["name"], f"{path}.meta.name") if "name" in found["meta"] else f"volume-{index + 1}"
    for field in ("path", "resource"):
        if field not in found:
            refuse(f"{path}.{field}", "it is missing")
    where = a_text(found["path"], f"{path}.path", MOST_LINE)
    mode = str(found.get("mode", "READONLY")).upper()
    is_workdir = where == "." and not _READ_ONLY.get(mode, True)
    if ".." in where.split("/") or not (where.strip("./") or is_workdir):
        refuse(f"{path}.path", f"{shown(where)} is not a directory inside the session", "Write one like data/cube.")
    if mode not in _READ_ONLY:
        refuse(f"{path}.mode", f"{shown(found['mode'])} is not a mode", "Write READONLY or READWRITE.")
    return Volume(name, where, names.find(found["resource"], f"{path}.resource"), _READ_ONLY[mode], kind)


def _storage(found: Document, path: str, index: int, names: _Names) -> tuple[Storage, Document]:
    kind = _kind(found, path, "simple-storage-resource")
    if kind == "simple-storage-resource":
        known_only(found, _STORAGE, path)
    name = names.add(found["meta"], path, f"storage-{index + 1}")
    return Storage(name, _sizes(found.get("size", {}), f"{path}.size", _A_GIB), kind=kind), found


def _data(found: Document, path: str, index: int, names: _Names) -> tuple[Data, Document]:
    kind = _kind(found, path, "simple-data-resource")
    if kind in _DATA:
        known_only(found, _DATA[kind], path)
    name = names.add(found["meta"], path, f"data-{index + 1}")
    location = found.get("location")
    if location is None and kind == "simple-data-resource":
        refuse(f"{path}.location", "it is missing", "Write where the data is: https://… or file:///….")
    skao = found.get("skao")
    size = found.get("size", skao.get("datasize") if isinstance(skao, Mapping) else None)
    checksum = found.get("checksum", skao.get("checksum") if isinstance(skao, Mapping) else None)
    data = Data(
        name=name,
        kind=kind,
        location="" if location is None else a_text(location, f"{path}.location", MOST_LINE),
        size=None if size is None else at(f"{path}.size", _bytes, size),
        checksum="" if checksum is None else _checksum(checksum, f"{path}.checksum"),
        prepare=_preparing(found.get("schedule"), f"{path}.schedule"),
        fields=_rest(found, path),
    )
    return data, found


def _rest(found: Document, path: str) -> Document:
    fields = {field: value for field, value in found.items() if field not in _DATA_READ}
    if "ignore" in fields:
        lines = a_list(fields["ignore"], f"{path}.ignore")
        fields["ignore"] = [a_text(line, f"{path}.ignore[{i}]", MOST_LINE) for i, line in enumerate(lines)]
    return fields


def _bytes(value: Any) -> int:
    """A file's size is in bytes when it is a number, as in the documents of the SKAO."""
    return parse_memory(value if isinstance(value, str) else f"{value}B")


def _checksum(value: Any, path: str) -> str:
    if isinstance(value, Mapping):
        value = f"{value.get('type', '')}:{value.get('value', '')}"
    text = a_text(value, path, 200).strip()
    name, colon, digits = text.partition(":")
    if not colon or not name or not digits or not digits.isalnum():
        refuse(path, f"{shown(text)} is not a checksum", "Write it as sha256:….")
    return f"{name.lower()}:{digits.lower()}"


def _preparing(schedule: Any, path: str) -> timedelta | None:
    preparing = a_map(schedule, path).get("preparing") if schedule is not None else None
    length = a_map(preparing, f"{path}.preparing").get("duration") if preparing is not None else None
    return None if length is None else _duration(length, f"{path}.preparing.duration", timedelta(0))


def _linked(
    storage: list[tuple[Storage, Document]], data: list[tuple[Data, Document]], names: _Names
) -> tuple[tuple[Storage, ...], tuple[Data, ...]]:
    """Each data resource knows its storage and each storage its data, whichever of them said so."""
    said = [
        (names.find(reference, path), item.name, path)
        for i, (item, found) in enumerate(storage)
        for reference, path in _each(found.get("data", ()), f"storage[{i}].data")
    ]
    said += [
        (item.name, names.find(found["storage"], f"data[{i}].storage"), f"data[{i}].storage")
        for i, (item, found) in enumerate(data)
        if "storage" in found
    ]
    rooms, things = {item.name for item, _ in storage}, {item.name for item, _ in data}
    goes_to: dict[str, str] = {}
    for name, room, path in said:
        if name not in things or room not in rooms:
            refuse(path, f"it must be a {'storage' if name in things else 'data'} resource")
        if goes_to.setdefault(name, room) != room:
            refuse(path, f"{shown(name)} goes to {shown(goes_to[name])} already")
    return (
        tuple(replace(it, data=tuple(n for n, room in goes_to.items() if room == it.name)) for it, _ in storage),
        tuple(replace(item, storage=goes_to.get(item.name, "")) for item, _ in data),
    )


def _duration(value: Any, path: str, least: timedelta) -> timedelta:
    length = at(path, parse_duration, a_text(value, path))
    if length < least:
        refuse(path, f"{shown(value)} is no time at all", "Write how long it should be usable: 2h.")
    return timedelta(seconds=-(-length // timedelta(seconds=1)))


def _starts(start: Any, more: Any, now: datetime) -> tuple[tuple[Window, ...], tuple[Recurring, ...]]:
    if start is None and more is None:
        return (), ()
    path = "schedule.requested.start"
    asked = [] if start is None else [(start, path)] if isinstance(start, str) else _each(start, path)
    if more is not None:
        asked += _each(more, "compute.starts")
    if len(asked) > MOST_WINDOWS:
        refuse(path, f"there are {len(asked)} windows", f"At most {MOST_WINDOWS} are read.")
    windows: list[Window] = []
    recurring: list[Recurring] = []
    for value, where in asked:
        found = at(where, parse_start, a_text(value, where), now)
        if isinstance(found, Window):
            windows.append(found)
        else:
            recurring.append(found)
    return tuple(windows), tuple(recurring)


def _each(value: Any, path: str) -> list[tuple[Any, str]]:
    return [(item, f"{path}[{i}]") for i, item in enumerate(a_list(value, path))]


def _limits(shape: Document, family: str) -> tuple[Limit, ...]:
    if family not in shape:
        return ()
    return tuple(_limit(item, f"{family}[{i}]") for i, item in enumerate(a_list(shape[family], family)))


def _limit(value: Any, path: str) -> Limit:
    found = {name: item for name, item in a_map(value, path).items() if item is not None}
    known_only(found, _BOUND, path)
    if "type" not in found:
        refuse(f"{path}.type", "it is missing", "Write one like urn:ivoa:calycopis:cost:monetary.")
    low = a_number(found["min"], f"{path}.min") if "min" in found else None
    high = a_number(found["max"], f"{path}.max") if "max" in found else None
    for name, bound in (("min", low), ("max", high)):
        if bound is not None and bound < 0:
            refuse(f"{path}.{name}", f"{bound:g} is less than nothing", "Write a number from 0 on.")
    if low is not None and high is not None and low > high:
        refuse(path, f"its min {low:g} is more than its max {high:g}", "Write the smaller one as min.")
    return Limit(a_text(found["type"], f"{path}.type"), low, high)
