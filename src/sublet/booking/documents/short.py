"""Converts the short form, which people write, to the full document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sublet.booking.documents.kinds import (
    MONETARY,
    NODE_COMPUTE,
    SIMPLE_COMPUTE,
    SIMPLE_COST,
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
from sublet.booking.documents.short_data import expand_data, expand_folder, expand_storage, expand_volumes
from sublet.booking.documents.short_executable import EXECUTABLES, expand_executable
from sublet.booking.documents.short_sizes import read_sizes, write_amount
from sublet.booking.model.amounts import duration_iso, parse_counts, parse_duration
from sublet.booking.model.request import GIB
from sublet.booking.model.shape import SIZES, WITHOUT_DISK
from sublet.booking.model.windows import parse_start
from sublet.kernel.document_fields import (
    a_number,
    a_text,
    at,
    decline,
    refuse_unknown_fields,
)

_ONLY_SHORT = frozenset(
    {*EXECUTABLES, *SIZES, "env", "time", "start", "max_cost", "web", "idle"}
    | {"parameters", "requirements", "entrypoint", "version", "tasks", "each_node", "workdir"}
)
_ANYWHERE = frozenset({"version"})  # a future schema may have it, with another meaning
_SHARED = frozenset({"name", "description", "data", "storage", "volumes", AFTER, OUTPUTS, PLACES, *WHERE})
_ONLY_FULL = frozenset({"executable", "compute", "computer", "schedule", "resources", "request", "costs", "metrics"})
ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def is_short(document: Mapping[str, Any]) -> bool:
    """Whether a document is in the short form."""
    return not _ONLY_SHORT.isdisjoint(document) and _ONLY_FULL.isdisjoint(document)


def full_document(document: Mapping[str, Any]) -> Document:
    """Convert any document, short, older or full, to the one full form."""
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
    kind, executable = expand_executable(short)
    volumes: list[Document] = []
    full: Document = {}
    if executable is not None:
        full["executable"] = executable
    inside = {"docker-container": "/", "app": "/job/"}.get(kind, "")  # where a container sees the data
    data = expand_folder(short, kind, volumes) + expand_data(
        short.get("data", []), inside, volumes, is_app=kind == "app"
    )
    storage = expand_storage(short.get("storage", []), f"{inside}data/" if kind == "app" else inside, volumes)
    volumes += expand_volumes(short.get("volumes", []))
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


def _compute(short: Document, volumes: list[Document]) -> Document:
    compute: Document = {"kind": SIMPLE_COMPUTE}
    for name in ("nodes", "cores", "gpus"):
        if name in short:
            least = 0 if name == "gpus" else 1
            counts = at(name, parse_counts, short[name], f"a number of {name}", least)
            compute[name] = {"min": counts.min, "max": counts.max}
    whole = True
    if "memory" in short:
        sizes = at("memory", read_sizes, short["memory"])
        whole = sizes.min % GIB == 0 and sizes.max % GIB == 0
        compute["memory"] = {"min": write_amount(sizes.min), "max": write_amount(sizes.max)}
    if "disk" in short:
        sizes = at("disk", read_sizes, short["disk"])
        compute["disk"] = {"min": write_amount(sizes.min), "max": write_amount(sizes.max)}
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
    """Return the exact amounts that were given, by their names in an app's manifest."""
    amounts = {
        name: short[name]
        for name in ("nodes", *WITHOUT_DISK)
        if name in short and compute[name]["min"] == compute[name]["max"]
    }
    return amounts | ({"time": short["time"]} if "time" in short else {})


def _check_starts(start: Any) -> None:
    """Check the starts, so that a mistake is reported at the person's own field; the times are read later."""
    several = isinstance(start, list)
    for i, text in enumerate(start if several else [start]):
        path = f"start[{i}]" if several else "start"
        at(path, parse_start, a_text(text, path), ANY_DAY)


def _is_interval(start: Any) -> bool:
    """Whether IVOA's one field can carry a start; words, and several windows, go into the compute resource."""
    return isinstance(start, str) and "/" in start and len(start.split()) == 1


def _read_requested(short: Document) -> Document:
    time = short.get("time", DEFAULT_DURATION)
    number = isinstance(time, int | float) and not isinstance(time, bool)
    length = at("time", parse_duration, str(time) if number else a_text(time, "time"))
    requested: Document = {"duration": duration_iso(length)}
    if _is_interval(short.get("start")):
        requested["start"] = short["start"]
    return requested
