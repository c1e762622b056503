"""Limits on costs and metrics in a request's document: of the whole request, and of each of its components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sublet.booking.documents.kinds import short_name
from sublet.booking.documents.reading import Reading
from sublet.booking.documents.shapes import COMMON, Document
from sublet.booking.model.request import Limit
from sublet.kernel.document_fields import MISSING, a_list, a_map, a_number, a_text, decline

_FIELDS = COMMON | {"type", "min", "max", "units"}
_KINDS = {
    "costs": ("simple-minmax-float-cost", "abstract-cost-item"),
    "metrics": ("simple-minmax-float-metric", "abstract-metric-item"),
}
UNKNOWN = "urn:unknown-kind"


def read_limits(shape: Document, family: str, reading: Reading) -> tuple[Limit, ...]:
    """Read all limits of a family, each with the part of the request that it limits."""
    limits = []
    for part, path, items in _list_stated_limits(shape, family):
        for index, item in enumerate(a_list(items, path)):
            limit = reading.attempt(None, _limit, item, f"{path}[{index}]", part, family, reading)
            if limit is not None:
                limits.append(limit)
    return tuple(limits)


def _list_stated_limits(shape: Document, family: str) -> Iterator[tuple[str, str, Any]]:
    """Yield each list of limits of a family, with the part that it limits and its path."""
    components = [("", "", shape), ("executable", "executable", shape.get("executable"))]
    components.append(("compute", "compute", shape["compute"]))
    for name in ("storage", "data"):
        components += [(f"{name}[{i}]", f"{name}[{i}]", item) for i, item in enumerate(shape.get(name, ()))]
    for part, path, component in components:
        if component and component.get(family) is not None:
            yield part, f"{path}.{family}" if path else family, component[family]


def _limit(value: Any, path: str, part: str, family: str, reading: Reading) -> Limit:
    document: Mapping[str, Any] = {name: item for name, item in a_map(value, path).items() if item is not None}
    kind = short_name(a_text(document["kind"], f"{path}.kind")) if "kind" in document else _KINDS[family][0]
    if kind not in _KINDS[family]:
        decline(f"{path}.kind", f"no {kind} is known here", f"Write {_KINDS[family][0]}.", UNKNOWN, kind)
    reading.ignore_unknown(document, _FIELDS, path)
    if "type" not in document:
        decline(f"{path}.type", "it is missing", "Write one like urn:ivoa:calycopis:cost:monetary.", MISSING)
    low = a_number(document["min"], f"{path}.min") if "min" in document else None
    high = a_number(document["max"], f"{path}.max") if "max" in document else None
    for name, bound in (("min", low), ("max", high)):
        if bound is not None and bound < 0:
            decline(f"{path}.{name}", f"{bound:g} is less than nothing", "Write a number from 0 on.")
    if low is not None and high is not None and low > high:
        decline(path, f"its min {low:g} is more than its max {high:g}", "Write the smaller one as min.")
    return Limit(a_text(document["type"], f"{path}.type"), low, high, part, path)
