"""Reads a request's document: checks every field, fills in defaults, and resolves links between resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from sublet.booking.documents.amounts import read_bytes, read_counts, read_sizes, whole_gib
from sublet.booking.documents.data_locations import locate_data
from sublet.booking.documents.kinds import short_name
from sublet.booking.documents.limits import read_limits
from sublet.booking.documents.outputs import WHEN, read_outputs
from sublet.booking.documents.places import read_places
from sublet.booking.documents.reading import Reading
from sublet.booking.documents.scheduler import read_scheduler
from sublet.booking.documents.shapes import AFTER, COMMON, OUTPUTS, PLACE, PLACES, TOP, Document
from sublet.booking.documents.short import full_document, is_short
from sublet.booking.model.amounts import parse_duration, quote_value
from sublet.booking.model.offer import EXECUTABLE_REQUIRED, Reason
from sublet.booking.model.request import (
    COMPUTE_WITH_NODES,
    GIB,
    PLAIN_COMPUTE,
    Compute,
    Data,
    Executable,
    Range,
    Recurring,
    Request,
    Storage,
    Volume,
    Window,
)
from sublet.booking.model.windows import parse_start
from sublet.kernel.document_fields import MISSING, a_list, a_map, a_name, a_text, at, decline, read_possible
from sublet.kernel.errors import BadRequest

MOST_WINDOWS = 100
MOST_LINE = 4096
MOST_AFTER = 100
_COMPUTE = COMMON | {"nodes", "cores", "memory", "gpus", "disk", "volumes", "starts"}
_STORAGE = COMMON | {"size", "data", "pool"}
_VOLUME = COMMON | {"path", "mode", "resource"}
_ANY_DATA = COMMON | {"storage"}
_DATA = {
    "simple-data-resource": _ANY_DATA | {"location", "size", "checksum", "ignore", "unpack", "write_back"},
    "S3-data-resource": _ANY_DATA | {"endpoint", "template", "bucket", "object"},
    "rucio-data-resource": _ANY_DATA | {"rucio"},
    "ivoa-data-resource": _ANY_DATA | {"ivoa"},
    "skao-data-resource": _ANY_DATA | {"ivoa", "skao"},
}
_DATA_READ = COMMON | {"storage", "location", "size", "checksum", "unpack", "write_back"}
_REQUESTED = frozenset({"duration", "start"})
_ISO_DURATION = re.compile(r"\s*-?[Pp]")
_COMPUTE_KINDS = (PLAIN_COMPUTE, COMPUTE_WITH_NODES)
_READ_ONLY = {"READONLY": True, "RO": True, "READWRITE": False, "RW": False}
_A_SECOND, _TWO_HOURS = timedelta(seconds=1), timedelta(hours=2)
_A_GIB = Range(GIB, GIB)
_NO_GPUS = Range(0, 0)
_NO_DISK = Range(0, 0)
_ONE = Range(1, 1)


T = TypeVar("T")


class Read(NamedTuple):
    """A request as it was read, the reasons against it, and remarks on what was ignored."""

    request: Request
    reasons: tuple[Reason, ...] = ()  # with any of them the answer is NO, and `request` is incomplete
    remarks: tuple[Reason, ...] = ()


def read_request(document: Mapping[str, Any], now: datetime) -> Request:
    """Read a request of any form; raise BadRequest for the first field that is malformed or can't be provided."""
    read = read_document(document, now)
    _insist(read.reasons)
    return read.request


def _insist(reasons: Sequence[Reason]) -> None:
    if reasons:
        first = reasons[0]
        raise BadRequest(detail=first.message.removesuffix("."), hint=first.nearest, field=first.field)


def read_document(document: Mapping[str, Any], now: datetime) -> Read:
    """Read a request of any form; raise BadRequest if a field has the wrong type.

    The short form is typed by a person, who should learn of any mistake at once: there, all of them raise BadRequest.
    """
    read = _read(document, now)
    if is_short(document):
        _insist(read.reasons)
    return read


def _read(document: Mapping[str, Any], now: datetime) -> Read:
    reading = Reading()
    shape = reading.attempt(None, full_document, document)
    if shape is None:
        return Read(Request(executable=None), tuple(reading.reasons))
    reading.ignore_unknown(shape, TOP, "")
    reading.ignore_unknown_meta(shape, "")
    request = _request(shape, now, reading)
    if reading.reasons and "executable" not in shape:
        reading.reasons.append(EXECUTABLE_REQUIRED)
    return Read(request, tuple(reading.reasons), tuple(reading.remarks))


def _request(shape: Document, now: datetime, reading: Reading) -> Request:
    rooms = _items(shape, "storage", _storage, reading)
    things = _items(shape, "data", _data, reading)
    storage, data = reading.attempt(((), ()), _link_storage, rooms, things, reading)
    requested = shape["schedule"]["requested"]
    reading.ignore_unknown(requested, _REQUESTED, "schedule.requested")
    starts = requested.get("start"), shape["compute"].get("starts")
    windows, recurring = reading.attempt(((), ()), _starts, *starts, now)
    where = {name: reading.attempt("", a_name, shape[name], name) for name in PLACE if name in shape}
    length = reading.attempt(_TWO_HOURS, _duration, requested["duration"], "schedule.requested.duration", _A_SECOND)
    executable = _executable(shape["executable"], reading) if "executable" in shape else None
    compute = _compute(shape["compute"], reading)
    return Request(
        executable=executable,
        compute=compute,
        storage=storage,
        data=data,
        duration=length,
        windows=windows,
        recurring=recurring,
        costs=read_limits(shape, "costs", reading),
        metrics=read_limits(shape, "metrics", reading),
        after=reading.attempt((), _after, shape.get(AFTER, ())),
        places=reading.attempt((), read_places, shape.get(PLACES, ())),
        outputs=reading.attempt((), read_outputs, shape.get(OUTPUTS, ())),
        platform=where.get("platform", ""),
        pledge=where.get("pledge", ""),
        scheduler=read_scheduler(shape, reading),
    )


def _items(
    shape: Document, family: str, read: Callable[[Document, str, int, Reading], T], reading: Reading
) -> list[tuple[T, Document, str]]:
    """Read the resources of a family, except those that are declined; each comes with its document and its path."""
    listed = []
    for index, item in enumerate(shape.get(family, ())):
        path = f"{family}[{index}]"
        resource = reading.attempt(None, read, item, path, index, reading)
        if resource is not None:
            listed.append((resource, item, path))
    return listed


def _after(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else a_list(value, AFTER)
    if len(names) > MOST_AFTER:
        decline(AFTER, f"there are {len(names)} sessions", f"At most {MOST_AFTER} are read.")
    return tuple(dict.fromkeys(a_name(name, f"{AFTER}[{i}]") for i, name in enumerate(names)))


def _kind(document: Mapping[str, Any], path: str, otherwise: str = "") -> str:
    if "kind" not in document and not otherwise:
        decline(f"{path}.kind", "it is missing", "Say what kind of thing it is, by its URI or its short name.")
    return short_name(a_text(document["kind"], f"{path}.kind")) if "kind" in document else otherwise


def _executable(document: Document, reading: Reading) -> Executable | None:
    kind = reading.attempt(None, _kind, document, "executable")
    reading.ignore_unknown_meta(document, "executable")
    meta = document["meta"]
    name = reading.attempt("", a_name, meta["name"], "executable.meta.name") if "name" in meta else ""
    fields = {field: value for field, value in document.items() if field not in COMMON}
    return None if kind is None else Executable(kind, name, fields)


def _compute(document: Document, reading: Reading) -> Compute:
    kind = reading.attempt("", _kind, document, "compute")
    if kind not in _COMPUTE_KINDS:
        return Compute(kind=kind)
    reading.ignore_unknown(document, _COMPUTE, "compute")
    reading.ignore_unknown_meta(document, "compute")
    meta = document["meta"]
    volumes = [
        reading.attempt(None, _volume, item, f"compute.volumes[{index}]", index, reading)
        for index, item in enumerate(document.get("volumes", ()))
    ]
    memory = read_sizes(document["memory"], "compute.memory", _A_GIB, reading)
    return Compute(
        name=reading.attempt("", a_name, meta["name"], "compute.meta.name") if "name" in meta else "compute",
        nodes=read_counts(document, "nodes", _ONE, reading),
        cores=read_counts(document, "cores", _ONE, reading),
        memory=whole_gib(memory) if kind == PLAIN_COMPUTE else memory,
        gpus=read_counts(document, "gpus", _NO_GPUS, reading),
        disk=read_sizes(document.get("disk", {}), "compute.disk", _NO_DISK, reading),
        volumes=tuple(volume for volume in volumes if volume is not None),
        kind=kind,
    )


def _volume(document: Document, path: str, index: int, reading: Reading) -> Volume:
    kind = _kind(document, path, "simple-volume-mount")
    name = (
        a_name(document["meta"]["name"], f"{path}.meta.name") if "name" in document["meta"] else f"volume-{index + 1}"
    )
    if kind != "simple-volume-mount":
        return Volume(name, "", "", kind=kind)  # its fields are left to platforms that can mount it
    reading.ignore_unknown(document, _VOLUME, path)
    reading.ignore_unknown_meta(document, path)
    for field in ("path", "resource"):
        if field not in document:
            decline(f"{path}.{field}", "it is missing", kind=MISSING)
    where = a_text(document["path"], f"{path}.path", MOST_LINE)
    mode = a_text(document.get("mode", "READONLY"), f"{path}.mode").upper()
    is_workdir = where == "." and not _READ_ONLY.get(mode, True)
    if ".." in where.split("/") or not (where.strip("./") or is_workdir):
        decline(
            f"{path}.path", f"{quote_value(where)} is not a directory inside the session", "Write one like data/cube."
        )
    if mode not in _READ_ONLY:
        decline(f"{path}.mode", f"{quote_value(document['mode'])} is not a mode", "Write READONLY or READWRITE.")
    return Volume(name, where, reading.names.find(document["resource"], f"{path}.resource"), _READ_ONLY[mode], kind)


def _storage(document: Document, path: str, index: int, reading: Reading) -> Storage:
    name = reading.names.add(document["meta"], path, f"storage-{index + 1}")
    kind = _kind(document, path, "simple-storage-resource")
    if kind != "simple-storage-resource":
        return Storage(name, _A_GIB, kind=kind)
    reading.ignore_unknown(document, _STORAGE, path)
    reading.ignore_unknown_meta(document, path)
    size = read_sizes(document.get("size", {}), f"{path}.size", _A_GIB, reading)
    pool = a_name(document["pool"], f"{path}.pool") if "pool" in document else ""
    return Storage(name, size, kind=kind, pool=pool)


def _data(document: Document, path: str, index: int, reading: Reading) -> Data:
    name = reading.names.add(document["meta"], path, f"data-{index + 1}")
    kind = _kind(document, path, "simple-data-resource")
    if kind not in _DATA:
        return Data(name, kind, fields={field: value for field, value in document.items() if field not in COMMON})
    reading.ignore_unknown(document, _DATA[kind], path)
    reading.ignore_unknown_meta(document, path)
    skao = document.get("skao")
    size = document.get("size", skao.get("datasize") if isinstance(skao, Mapping) else None)
    checksum = document.get("checksum", skao.get("checksum") if isinstance(skao, Mapping) else None)
    goes_back = _when(document.get("write_back", False), f"{path}.write_back")
    return Data(
        name=name,
        kind=kind,
        location=locate_data(document, kind, path),
        size=None if size is None else read_bytes(size, f"{path}.size"),
        checksum="" if checksum is None else _checksum(checksum, f"{path}.checksum"),
        prepare=_preparing(document.get("schedule"), f"{path}.schedule"),
        write_back=goes_back is not None,
        write_back_always=goes_back is True,
        unpack=_flag(document.get("unpack", False), f"{path}.unpack"),
        fields=_rest(document, path),
    )


def _when(value: Any, path: str) -> bool | None:
    """Return whether data is written back even if the session failed; None if it is never written back."""
    if isinstance(value, bool):
        return False if value else None
    if not isinstance(value, str) or value not in WHEN:
        decline(path, f"{quote_value(value)} is not true or false", f"Or write {' or '.join(WHEN)}.")
    return WHEN[value]


def _flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        decline(path, f"{quote_value(value)} is not true or false")
    return value


def _rest(document: Document, path: str) -> Document:
    fields = {field: value for field, value in document.items() if field not in _DATA_READ}
    if "ignore" in fields:
        lines = a_list(fields["ignore"], f"{path}.ignore")
        fields["ignore"] = [a_text(line, f"{path}.ignore[{i}]", MOST_LINE) for i, line in enumerate(lines)]
    return fields


def _checksum(value: Any, path: str) -> str:
    if isinstance(value, Mapping):
        value = f"{value.get('type', '')}:{value.get('value', '')}"
    text = a_text(value, path, 200).strip()
    name, colon, digits = text.partition(":")
    if not colon or not name or not digits or not digits.isalnum():
        decline(path, f"{quote_value(text)} is not a checksum", "Write it as sha256:….")
    return f"{name.lower()}:{digits.lower()}"


def _preparing(schedule: Any, path: str) -> timedelta | None:
    preparing = a_map(schedule, path).get("preparing") if schedule is not None else None
    length = a_map(preparing, f"{path}.preparing").get("duration") if preparing is not None else None
    return None if length is None else _duration(length, f"{path}.preparing.duration", timedelta(0))


def _link_storage(
    storage: list[tuple[Storage, Document, str]], data: list[tuple[Data, Document, str]], reading: Reading
) -> tuple[tuple[Storage, ...], tuple[Data, ...]]:
    """Link each data resource to its storage, and each storage to its data, whichever of them names the other."""
    links = [
        (reading.names.find(reference, path), item.name, path)
        for item, document, where in storage
        for reference, path in _each(document.get("data", ()), f"{where}.data")
    ]
    links += [
        (item.name, reading.names.find(document["storage"], f"{path}.storage"), f"{path}.storage")
        for item, document, path in data
        if "storage" in document
    ]
    rooms, things = {item.name for item, _, _ in storage}, {item.name for item, _, _ in data}
    goes_to: dict[str, str] = {}
    for name, room, path in links:
        if name not in things or room not in rooms:
            decline(path, f"it must be a {'storage' if name in things else 'data'} resource")
        if goes_to.setdefault(name, room) != room:
            decline(path, f"{quote_value(name)} goes to {quote_value(goes_to[name])} already")
    return (
        tuple(replace(it, data=tuple(n for n, room in goes_to.items() if room == it.name)) for it, _, _ in storage),
        tuple(replace(item, storage=goes_to.get(item.name, "")) for item, _, _ in data),
    )


def _duration(value: Any, path: str, least: timedelta) -> timedelta:
    text = a_text(value, path)
    length = (read_possible if _ISO_DURATION.match(text) else at)(path, parse_duration, text)
    if length < least:
        decline(path, f"{quote_value(value)} is no time at all", "Write how long it should be usable: 2h.")
    return timedelta(seconds=-(-length // timedelta(seconds=1)))


def _starts(start: Any, more: Any, now: datetime) -> tuple[tuple[Window, ...], tuple[Recurring, ...]]:
    if start is None and more is None:
        return (), ()
    path = "schedule.requested.start"
    asked = [] if start is None else [(start, path)] if isinstance(start, str) else _each(start, path)
    if more is not None:
        asked += _each(more, "compute.starts")
    if len(asked) > MOST_WINDOWS:
        decline(path, f"there are {len(asked)} windows", f"At most {MOST_WINDOWS} are read.")
    windows: list[Window] = []
    recurring: list[Recurring] = []
    for value, where in asked:
        text = a_text(value, where)
        found = (read_possible if "/" in text else at)(where, parse_start, text, now)
        if isinstance(found, Window):
            windows.append(found)
        else:
            recurring.append(found)
    return tuple(windows), tuple(recurring)


def _each(value: Any, path: str) -> list[tuple[Any, str]]:
    return [(item, f"{path}[{i}]") for i, item in enumerate(a_list(value, path))]
