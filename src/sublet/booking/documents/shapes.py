"""Converts documents of any version, or with any part left out, to the one shape of version 1.0.7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.documents.kinds import SIMPLE_COMPUTE
from sublet.booking.documents.older import (
    as_words,
    one_length,
    resolve_volumes,
    sort_resources,
    spread_volume,
    with_unit,
)
from sublet.booking.model.scheduler import SCHEDULER_NAMES
from sublet.kernel.document_fields import a_list, a_map, decline

Document = dict[str, Any]

PLACE = ("platform", "pledge")
WHERE = (*PLACE, *SCHEDULER_NAMES)  # where it may run, and who pays
AFTER = "after"  # the sessions that must have completed first
PLACES = "places"  # directories of the system that sessions share
OUTPUTS = "outputs"  # results that are sent somewhere at the end
TOP = frozenset(
    {"executable", "compute", "storage", "data", "schedule", "costs", "metrics", AFTER, OUTPUTS, PLACES, *WHERE}
    | {"resources", "volumes", "computer", "kind", "type", "meta", "name", "description"}  # in older shapes
)
# Fields that schemas put on every component, and that a request may carry although only a service fills them in.
COMMON = frozenset(
    {"kind", "type", "meta", "name", "uuid", "ident", "href", "url", "description", "created", "modified"}
    | {"messages", "options", "costs", "metrics", "phase", "state", "status", "schedule"}
)
_AS_THEY_ARE = frozenset({*WHERE, AFTER, OUTPUTS, PLACES, "costs", "metrics", "meta"})
_RESOURCES = frozenset({"compute", "computer", "storage", "data", "volumes"})
_IDENTITY = ("name", "uuid", "description")
_REQUESTED = frozenset({"duration", "start", "datetime"})
DEFAULT_DURATION = "PT2H"
DEFAULT_COUNT = {"min": 1, "max": 1}


def one_shape(document: Mapping[str, Any]) -> Document:
    """Return the request in the shape of version 1.0.7, to which rules apply, with compute and duration filled in."""
    parts = _parts(document)
    shape: Document = {name: value for name, value in parts.items() if name not in TOP or name in _AS_THEY_ARE}
    if "executable" in parts:
        shape["executable"] = _executable(component(parts["executable"], "executable"))
    shape["compute"] = _compute(parts)
    for family in ("storage", "data"):
        if family in parts:
            shape[family] = _resources(parts[family], family)
    shape["schedule"] = _schedule(parts.get("schedule"))
    return shape


def _parts(document: Mapping[str, Any]) -> Document:
    while "request" in document and len(document) == 1:
        document = a_map(document["request"], "request")
    parts = without_nulls(document)
    resources = parts.pop("resources", None)
    if resources is not None:
        inner = without_nulls(sort_resources(resources))
        for name, value in inner.items():
            if name in parts:
                decline(f"resources.{name}", "it is also given outside resources")
            parts[name if name in _RESOURCES else f"resources.{name}"] = value
    if "computer" in parts:
        older = parts.pop("computer")
        if "compute" in parts:
            decline("computer", "there is compute too", "Keep one of them: compute.")
        parts["compute"] = older
    return parts


def without_nulls(value: Mapping[str, Any]) -> Document:
    """Return the fields that aren't null: generated clients send missing fields as null."""
    return {name: item for name, item in value.items() if item is not None}


def component(value: Any, path: str) -> Document:
    """Return a component with its `kind`, and with its name inside `meta`."""
    document = without_nulls(a_map(value, path))
    if "spec" in document and isinstance(document["spec"], Mapping):
        document = without_nulls(document.pop("spec")) | document
    if "type" in document:
        older = document.pop("type")
        document.setdefault("kind", older)
    meta = without_nulls(a_map(document.get("meta", {}), f"{path}.meta"))
    for name in _IDENTITY:
        if name in document:
            older = document.pop(name)
            meta.setdefault(name, older)
    document["meta"] = meta
    return document


def _executable(document: Document) -> Document:
    """Convert an older container, which names its image in parts, or an older notebook, which has `notebook`."""
    image = document.get("image")
    if isinstance(image, str):
        place = f"{document.pop('repository')}/{image}" if isinstance(document.get("repository"), str) else image
        whole = f"{place}:{document.pop('tag')}" if isinstance(document.get("tag"), str | int | float) else place
        document["image"] = {"locations": [whole]}
        if "digest" in document:
            document["image"]["digest"] = document.pop("digest")
    notebook = document.get("notebook")
    if isinstance(notebook, str):
        notebook = {"location": notebook}
    if isinstance(notebook, Mapping) and set(notebook) == {"location"}:
        document.pop("notebook")
        document.setdefault("location", notebook["location"])
    return document | {name: as_words(document[name]) for name in ("command", "entrypoint", "argv") if name in document}


def _compute(parts: Document) -> Document:
    value = parts.get("compute", {})
    if isinstance(value, list):
        if len(value) != 1:
            decline("compute", f"there are {len(value)} of them", "A request has exactly one compute resource.")
        value = value[0]
    document = component(value, "compute")
    document.setdefault("kind", SIMPLE_COMPUTE)
    for name in ("nodes", "cores", "memory", "gpus", "disk"):
        if name in document:
            document[name] = _bounds(document[name], f"compute.{name}", is_size=name in ("memory", "disk"))
    document.setdefault("cores", DEFAULT_COUNT)
    document.setdefault("memory", DEFAULT_COUNT)
    if "volumes" in parts:
        document["volumes"] = resolve_volumes(document.get("volumes", []), parts["volumes"])
    if "volumes" in document:
        volumes = [
            (item, f"compute.volumes[{i}]") for i, item in enumerate(a_list(document["volumes"], "compute.volumes"))
        ]
        spread = [spread_volume(component(item, path), parts.get("data"), path) for item, path in volumes]
        document["volumes"] = [volume for several in spread for volume in several]
    return document


def _resources(value: Any, family: str) -> list[Document]:
    documents = [component(item, f"{family}[{at}]") for at, item in enumerate(a_list(value, family))]
    for at, item in enumerate(documents):
        if family == "storage" and "size" in item:
            item["size"] = _bounds(item["size"], f"storage[{at}].size", is_size=True)
        if family == "storage" and "resources" in item:
            older = item.pop("resources")
            item.setdefault("data", older)
    return documents


def _bounds(value: Any, path: str, *, is_size: bool) -> Any:
    """Return an amount as min and max; a single value is both."""
    if not isinstance(value, Mapping):
        return {"min": value, "max": value}
    bounds = without_nulls(value)
    inner = bounds.get("requested")
    if isinstance(inner, Mapping):
        bounds = without_nulls(inner)
    bounds = with_unit(bounds, path, is_size=is_size)
    if "min" in bounds:
        bounds.setdefault("max", bounds["min"])
    return bounds


def _schedule(schedule: Any) -> Document:
    """Return the requested times as one block; older schemas have a list of blocks, each with a window."""
    schedule = {"requested": schedule} if isinstance(schedule, list) else schedule
    value = without_nulls(a_map({} if schedule is None else schedule, "schedule"))
    if "requested" not in value:
        value["requested"] = {name: value.pop(name) for name in _REQUESTED if name in value}
    requested = value["requested"]
    if isinstance(requested, list):
        blocks = [_block(item, f"schedule.requested[{at}]") for at, item in enumerate(requested)]
        block = _as_one(blocks)
    else:
        block = _block(requested, "schedule.requested")
    block.setdefault("duration", DEFAULT_DURATION)
    return value | {"requested": block}


def _block(value: Any, path: str) -> Document:
    block = without_nulls(a_map(value, path))
    if "datetime" in block:
        older = block.pop("datetime")
        block.setdefault("start", older)
    return without_nulls(block | {"duration": one_length(block.get("duration"))})


def _as_one(blocks: list[Document]) -> Document:
    """Merge several blocks into one with all their windows; decline if their durations differ."""
    merged = {name: value for block in blocks for name, value in block.items()}
    if any(block.get("duration") != merged.get("duration") for block in blocks):
        hint = "Send one request for each length."
        decline("schedule.requested", "the times asked for are of different lengths", hint)
    starts = [start for block in blocks for start in _starts_in(block)]
    return merged | ({"start": starts} if starts else {})


def _starts_in(block: Document) -> list[Any]:
    start = block.get("start", [])
    return start if isinstance(start, list) else [start]
