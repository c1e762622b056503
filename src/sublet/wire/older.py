"""Single parts of older schemas, as the newest one writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sublet.wire.fields import a_list, a_map, a_text, decline
from sublet.wire.kinds import short_name

Document = dict[str, Any]

_FAMILIES = ("compute", "storage", "data")
_BYTES = re.compile(r"([kmgtp])(?:i|ib|ibi)?(?:bytes?)?", re.IGNORECASE)


def sort_resources(resources: Any) -> Mapping[str, Any]:
    """Resources by their family; in the oldest schemas they are one list, and each names its own."""
    if not isinstance(resources, list):
        return a_map(resources, "resources")
    found: Document = {}
    for at, item in enumerate(resources):
        path = f"resources[{at}]"
        resource = a_map(item, path)
        kind = short_name(a_text(resource.get("kind", resource.get("type", "")), f"{path}.type"))
        family = next((name for name in _FAMILIES if name in kind.split("-")), "")
        if not family:
            decline(
                f"{path}.type", f"no {kind} is known here", "Write compute, storage or data.", "urn:unknown-kind", kind
            )
        found.setdefault(family, []).append(resource)
    return found


def resolve_volumes(named: Any, volumes: Any) -> list[Any]:
    """The volumes of a compute resource that may name some which are described beside it."""
    known = {
        str(volume.get("name", "")): volume for volume in a_list(volumes, "volumes") if isinstance(volume, Mapping)
    }
    found = []
    for at, item in enumerate(a_list(named, "compute.volumes")):
        if not isinstance(item, str):
            found.append(item)
        elif item in known:
            found.append(known.pop(item))
        else:
            decline(f"compute.volumes[{at}]", f"there is no volume called {item}", kind="urn:resource-not-found")
    return found + list(known.values())


def with_unit(bounds: Document, path: str, *, is_size: bool) -> Document:
    """An amount whose unit stands beside it: with the unit in it, or as it is where that is the usual one."""
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
    """A duration; of one that is at least and at most so long, the least that is asked for."""
    if not isinstance(duration, Mapping):
        return duration
    given = [duration[name] for name in ("min", "max") if duration.get(name) is not None]
    return given[0] if given else None
