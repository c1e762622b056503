"""Requests and updates in schemas before 1.0: `type` for `kind`, names beside them, `/offersets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OLD_BASE = "https://www.purl.org/ivoa.net/EB/schema/types"
KINDS = "/schema/v1.0/kinds/"
IDENTITY = ("name", "uuid", "description")
COMPONENTS = ("executable", "compute", "storage", "data", "volumes")


def write_older(document: Mapping[str, Any]) -> dict[str, Any]:
    """Write a request as brokers of 2025 read it; fields that they don't know are kept."""
    older = dict(document)
    for name in COMPONENTS:
        if isinstance(older.get(name), Mapping):
            older[name] = _component(older[name])
        elif isinstance(older.get(name), list):
            older[name] = [_component(item) if isinstance(item, Mapping) else item for item in older[name]]
    return older


def _component(item: Mapping[str, Any]) -> dict[str, Any]:
    older = {name: value for name, value in item.items() if name not in ("kind", "meta")}
    if isinstance(item.get("kind"), str):
        older["type"] = _older_uri(item["kind"])
    meta = item.get("meta")
    if isinstance(meta, Mapping):
        older |= {name: meta[name] for name in IDENTITY if name in meta}
    if isinstance(older.get("volumes"), list):
        older["volumes"] = [_component(each) if isinstance(each, Mapping) else each for each in older["volumes"]]
    return older


def _older_uri(kind: str) -> str:
    """Return the older URI: `…/schema/v1.0/kinds/executable/x.yaml` was `…/schema/types/executable/x-1.0`."""
    _, known, rest = kind.partition(KINDS)
    return f"{OLD_BASE}/{rest.removesuffix('.yaml')}-1.0" if known else kind


def write_update(phase: str, *, older: bool) -> dict[str, Any]:
    """Write an update that asks for a session's phase to change."""
    if older:
        return {"update": {"type": "uri:enum-value-update", "path": "phase", "value": phase}}
    return {"kind": "uri:enum-value-update", "path": "phase", "value": phase}


def write_longer(seconds: int, *, older: bool) -> dict[str, Any]:
    """Write an update that asks for a session to last this much longer."""
    update = {"path": "schedule.available.duration", "delta": seconds, "units": "seconds"}
    kind = "uri:integer-delta-update"
    return {"update": {"type": kind, **update}} if older else {"kind": kind, **update}
