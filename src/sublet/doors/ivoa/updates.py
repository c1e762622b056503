"""Updates of a session in IVOA's format: a new phase, or a longer duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sublet.booking.model.phases import Phase
from sublet.kernel.errors import BadRequest, NotChangeable

PHASE_PATHS = frozenset({"phase", "state", "status"})  # the draft standard's text also says state and status
DURATION_PATH = "schedule.available.duration"
UNITS = {"": 1, "s": 1, "seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
LONGEST = 400 * 86400  # the same limit as for requests
KINDS = frozenset({"string-value-update", "enum-value-update", "integer-value-update", "integer-delta-update"})


@dataclass(frozen=True, slots=True)
class PhaseUpdate:
    """A change to this phase."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class LongerUpdate:
    """An extension by this duration."""

    by: timedelta


Update = PhaseUpdate | LongerUpdate


def read_update(document: Mapping[str, Any]) -> Update:
    """Read an AbstractUpdate, bare or in the older `{update: …}`, with `kind` or the older `type`."""
    inner = document.get("update", document)
    if not isinstance(inner, Mapping):
        raise BadRequest(detail="`update` must be a mapping.")
    kind = _text(inner, "kind" if "kind" in inner else "type")
    path = _text(inner, "path").strip("/").replace("/", ".")
    name = kind.rsplit(":", 1)[-1].rsplit("/", 1)[-1]
    delta, units = _delta(inner), _units(inner)
    if name not in KINDS:
        raise BadRequest(detail=f"`kind` is {kind[:80]!r}, which is no kind of update.")
    if path in PHASE_PATHS and name in {"enum-value-update", "string-value-update"}:
        return PhaseUpdate(_phase(_text(inner, "value")))
    if name == "integer-delta-update" and path == DURATION_PATH:
        return LongerUpdate(_longer(delta, units))
    raise NotChangeable(path=path[:80] or "(nothing)", kind=name)


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(detail=f"`{name}` of an update must be text.")
    return value


def _phase(value: str) -> Phase:
    try:
        return Phase(value.upper())
    except ValueError:
        raise BadRequest(detail=f"`value` is {value[:80]!r}, which is no phase.") from None


def _delta(document: Mapping[str, Any]) -> int | None:
    delta = document.get("delta")
    if delta is not None and (not isinstance(delta, int) or isinstance(delta, bool)):
        raise BadRequest(detail="`delta` of an update must be a whole number.")
    return delta


def _units(document: Mapping[str, Any]) -> str:
    units = document.get("units")
    if units is not None and not isinstance(units, str):
        raise BadRequest(detail="`units` of an update must be text.")
    return units or ""


def _longer(delta: int | None, units: str) -> timedelta:
    if units not in UNITS:
        raise BadRequest(detail=f"`units` must be one of {', '.join(unit for unit in UNITS if unit)}.")
    seconds = (delta or 0) * UNITS[units]
    if not 0 < seconds <= LONGEST:
        raise BadRequest(detail="`delta` must be more than nothing and at most 400 days: a session only gets longer.")
    return timedelta(seconds=seconds)
