"""Loads the installed kinds from their entry points, and reports those that can't be loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import cast

from sublet.kernel.plugins import plugins
from sublet.kinds.port import Kind

GROUP = "sublet.kinds"
ANSWERS = ("check", "ways", "needs", "brings")


@dataclass(frozen=True)
class Kinds:
    """The kinds by short name, and the broken ones with the reason."""

    by_name: Mapping[str, Kind]
    broken: Mapping[str, str]


def survey_kinds(points: tuple[EntryPoint, ...] | None = None) -> Kinds:
    """Load every installed kind; one that fails to load is reported as broken, not omitted."""
    kinds: dict[str, Kind] = {}
    broken: dict[str, str] = {}
    for point in plugins(GROUP) if points is None else points:
        try:
            kinds[point.name] = _load_entry(point)
        except Exception as why:  # a plug-in may fail in any way; the others must still load
            broken[point.name] = f"{point.value}: {type(why).__name__}: {why}"
    return Kinds(kinds, broken)


def _load_entry(point: EntryPoint) -> Kind:
    kind = point.load()
    missing = [name for name in ANSWERS if not callable(getattr(kind, name, None))]
    if missing or getattr(kind, "name", None) != point.name:
        raise TypeError(f"it is not a kind named {point.name}" + (f": no {', '.join(missing)}" if missing else ""))
    return cast(Kind, kind)
