"""The outcome of reading a request: names of its resources, reasons against it, and remarks on ignored fields."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from sublet.booking.model.amounts import quote_value
from sublet.booking.model.offer import IGNORED, Reason
from sublet.kernel.document_fields import NOT_FOUND, a_name, decline, find_unknown, suggest_field
from sublet.kernel.errors import BadRequest

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")
_META = frozenset({"uuid", "name", "url", "description", "created", "modified", "messages", "options"})
_META |= {"ident", "href"}  # in older schemas
_TIMES = ("preparing", "available", "releasing")
_PLANNED = frozenset({*_TIMES, "requested"})
_SPAN = frozenset({"start", "duration"})


class ResourceNames:
    """The names of a request's resources, by name or uuid."""

    def __init__(self) -> None:
        """Start without names."""
        self._called: dict[str, str] = {}

    def add(self, meta: Mapping[str, Any], path: str, otherwise: str) -> str:
        """Add a resource and return its name, or `otherwise` if it has none; decline a name that is taken."""
        name = a_name(meta["name"], f"{path}.meta.name") if "name" in meta else otherwise
        called = [name] if meta.get("uuid") in (None, name) else [name, a_name(meta["uuid"], f"{path}.meta.uuid")]
        for each in called:
            if each in self._called:
                hint = "Names must differ."
                decline(f"{path}.meta.name", f"another resource is called {quote_value(each)} too", hint)
            self._called[each] = name
        return name

    def find(self, value: Any, path: str) -> str:
        """Return the name of the resource with this name or uuid; decline if there is none."""
        wanted = a_name(value, path)
        if wanted not in self._called:
            close = difflib.get_close_matches(wanted, self._called, 1)
            there = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(self._called) or 'none'}."
            decline(path, f"there is no data or storage called {quote_value(wanted)}", there, NOT_FOUND, wanted)
        return self._called[wanted]


class Reading:
    """One reading of a request; reasons against it are collected, so that the answer has all of them."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self.names = ResourceNames()
        self.reasons: list[Reason] = []
        self.remarks: list[Reason] = []

    def attempt(self, otherwise: D, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | D:
        """Return what `read` makes of a part of a request; if that is declined, note why and return `otherwise`."""
        try:
            return read(*args, **kwargs)
        except BadRequest as error:
            reason = error.values.get("reason")
            if not isinstance(reason, Reason):
                raise
            self.reasons.append(reason)
            return otherwise

    def ignore_unknown(self, value: Mapping[str, Any], known: Iterable[str], path: str) -> None:
        """Add a remark for each unknown field, which is from a newer schema, or mistyped."""
        names = frozenset(known)
        for name in find_unknown(value, names):
            where = f"{path}.{name}" if path else name
            message = f"{where}: there is no field {quote_value(name)} here, and it was ignored."
            self.remarks.append(Reason(IGNORED, where, message, nearest=suggest_field(name, names)))

    def ignore_unknown_meta(self, part: Mapping[str, Any], path: str) -> None:
        """Do the same for the fields of every component: its metadata, and the times that a service plans for it."""
        inside = f"{path}." if path else ""
        if isinstance(part.get("meta"), Mapping):
            self.ignore_unknown(part["meta"], _META, f"{inside}meta")
        schedule = part.get("schedule")
        if isinstance(schedule, Mapping):
            self.ignore_unknown(schedule, _PLANNED, f"{inside}schedule")
            for name in _TIMES:
                if isinstance(schedule.get(name), Mapping):
                    self.ignore_unknown(schedule[name], _SPAN, f"{inside}schedule.{name}")
