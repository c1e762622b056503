"""Converts parts of older schemas to the newest one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sublet.booking.documents.kinds import short_name
from sublet.booking.model.bag import as_text
from sublet.kernel.document_fields import MISSING, a_list, a_map, a_text, decline
from sublet.kernel.value_names import directory_name, last_name

Document = dict[str, Any]

_FAMILIES = ("compute", "storage", "data")
_BYTES = re.compile(r"([kmgtp])(?:i|ib|ibi)?(?:bytes?)?", re.IGNORECASE)


def sort_resources(resources: Any) -> Mapping[str, Any]:
    """Return resources by their family; in the oldest schemas they are one list, in which each names its type."""
    if not isinstance(resources, list):
        return a_map(resources, "resources")
    by_family: Document = {}
    for at, item in enumerate(resources):
        path = f"resources[{at}]"
        resource = a_map(item, path)
        kind = short_name(a_text(resource.get("kind", resource.get("type", "")), f"{path}.type"))
        family = next((name for name in _FAMILIES if name in kind.split("-")), "")
        if not family:
            decline(
                f"{path}.type", f"no {kind} is known here", "Write compute, storage or data.", "urn:unknown-kind", kind
            )
        by_family.setdefault(family, []).append(resource)
    return by_family


def resolve_volumes(named: Any, volumes: Any) -> list[Any]:
    """Return the volumes of a compute resource: names become volumes described beside it, and others are added."""
    known = {_name_of(volume): volume for volume in a_list(volumes, "volumes") if isinstance(volume, Mapping)}
    volumes_named = []
    for at, item in enumerate(a_list(named, "compute.volumes")):
        if not isinstance(item, str):
            volumes_named.append(item)
        elif item in known:
            volumes_named.append(known.pop(item))
        else:
            decline(f"compute.volumes[{at}]", f"there is no volume called {item}", kind="urn:resource-not-found")
    return volumes_named + list(known.values())


def _name_of(resource: Mapping[str, Any]) -> str:
    """Return a resource's name, which older schemas put beside its other fields instead of in `meta`."""
    meta = resource.get("meta")
    named = resource if resource.get("name") is not None or not isinstance(meta, Mapping) else meta
    return str(named.get("name", ""))


def spread_volume(volume: Document, data: Any, path: str) -> list[Document]:
    """Return a volume for each resource that a volume names; several get a subdirectory each below its path."""
    resources = volume.pop("resources", None)
    volume.pop("cardinality", None)
    if resources is None or "resource" in volume:
        return [volume]
    if not a_list(resources, f"{path}.resources"):
        decline(f"{path}.resources", "it names no resource", kind=MISSING)
    where = volume.get("path")
    if len(resources) == 1 or not isinstance(where, str):
        return [volume | {"resource": resources[0]}]
    names = _names_inside([str(name) for name in resources], data)
    called = str(volume["meta"].get("name", where))
    return [
        volume | {"meta": {"name": f"{called} {name}"}, "path": f"{where.rstrip('/')}/{name}", "resource": resource}
        for name, resource in zip(names, resources, strict=True)
    ]


def _names_inside(resources: Sequence[str], data: Any) -> list[str]:
    """Return the subdirectories for resources of one volume: data by its file name, unless two would be the same."""
    items = [item for item in data if isinstance(item, Mapping)] if isinstance(data, list) else []
    files = {_name_of(item): last_name(str(item.get("location", ""))) for item in items}
    names = [files.get(name) or directory_name(name) for name in resources]
    return names if len(set(names)) == len(names) else [directory_name(name) for name in resources]


def as_words(command: Any) -> Any:
    """Return a command with its numbers as text."""
    if not isinstance(command, list):
        return command
    return [as_text(word) if isinstance(word, bool | int | float) else word for word in command]


def with_unit(bounds: Document, path: str, *, is_size: bool) -> Document:
    """Merge an amount's separate `units` field into its values; the usual unit is left out."""
    if "units" not in bounds:
        return bounds
    rest = {name: value for name, value in bounds.items() if name != "units"}
    unit = "".join(a_text(bounds["units"], f"{path}.units").split())
    plain = re.fullmatch(r"(cores?|nodes?|gpus?|cpus?)", unit, re.IGNORECASE)
    size = _BYTES.fullmatch(unit) if is_size else None
    if size is None and (is_size or not plain):
        hint = "Write GiB, or leave it out." if is_size else "Leave it out."
        decline(f"{path}.units", f"{unit} is no unit of this", hint, wanted=unit)
    if size is None or size[1].upper() == "G":
        return rest
    return {
        name: f"{value}{size[1].upper()}iB" if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in rest.items()
    }


def one_length(duration: Any) -> Any:
    """Return a duration; of a range, its minimum if it has one."""
    if not isinstance(duration, Mapping):
        return duration
    given = [duration[name] for name in ("min", "max") if duration.get(name) is not None]
    return given[0] if given else None
