"""Readers of a document's fields: each takes a value and its path, and raises an error that names the path."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

from sublet.booking.model.amounts import finite, quote_value
from sublet.booking.model.offer import Reason
from sublet.kernel.errors import BadRequest

P = ParamSpec("P")
T = TypeVar("T")
MOST_TEXT = 1024
MOST_ITEMS = 1000
INVALID = "urn:invalid-value"
MISSING = "urn:missing-value"
NOT_FOUND = "urn:resource-not-found"


def refuse(path: str, detail: str, hint: str = "") -> NoReturn:
    """Raise BadRequest for a field that can't be understood, which is an error for every caller."""
    raise BadRequest(detail=f"{path}: {detail}", hint=hint, field=path)


def decline(path: str, detail: str, hint: str = "", kind: str = INVALID, wanted: str = "") -> NoReturn:
    """Raise BadRequest for a field that is valid but asks for the impossible: the answer to the request is NO."""
    reason = Reason(kind, path, f"{path}: {detail.rstrip('.')}.", wanted=wanted, nearest=hint)
    raise BadRequest(detail=f"{path}: {detail}", hint=hint, field=path, reason=reason)


def read_possible(path: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `read` for a well-formed field; a BadRequest from it means that the answer is NO."""
    try:
        return read(*args, **kwargs)
    except BadRequest as error:
        decline(path, error.clause, error.advice)


def at(path: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `read` for a field; a BadRequest from it gets the field's path."""
    try:
        return read(*args, **kwargs)
    except BadRequest as error:
        if "field" in error.values:
            raise
        raise BadRequest(detail=f"{path}: {error.clause}", hint=error.advice, field=path) from None


def a_map(value: Any, path: str) -> Mapping[str, Any]:
    """Return the value if it is a map; raise BadRequest otherwise."""
    if not isinstance(value, Mapping):
        refuse(path, f"{quote_value(value)} is not a map", "Write it as `name: value` pairs.")
    return value


def a_list(value: Any, path: str) -> Sequence[Any]:
    """Return the value if it is a list that isn't too long; raise BadRequest otherwise."""
    if not isinstance(value, list | tuple):
        refuse(path, f"{quote_value(value)} is not a list", "Write one item a line, each after a dash.")
    if len(value) > MOST_ITEMS:
        decline(path, f"it has {len(value)} items", f"At most {MOST_ITEMS} are read.")
    return value


def a_text(value: Any, path: str, most: int = MOST_TEXT) -> str:
    """Return the value if it is text, not blank and not too long; raise BadRequest otherwise."""
    if not isinstance(value, str):
        refuse(path, f"{quote_value(value)} is not text", "Put it in quotes.")
    if not value.strip():
        decline(path, "it is empty", kind=MISSING)
    if len(value) > most:
        decline(path, f"it has {len(value)} characters", f"At most {most} are read.")
    return value


def a_name(value: Any, path: str) -> str:
    """Return a name: one line of printable text, or an integer as text.

    Names are always treated as data, so nothing else about them is restricted.
    """
    name = a_text(str(value) if isinstance(value, int) and not isinstance(value, bool) else value, path, 200)
    if not name.isprintable():
        decline(path, f"{quote_value(name)} has characters that can't be printed")
    return name


def a_number(value: Any, path: str) -> float:
    """Return a finite number; one that is too large becomes the largest float."""
    is_number = isinstance(value, int | float | str) and not isinstance(value, bool)
    try:
        return finite(str(value) if is_number else "")
    except ValueError:
        refuse(path, f"{quote_value(value)} is not a number")


SYNONYMS = {  # what other systems call a field
    "command": "run",
    "cmd": "run",
    "files": "data",
    "inputs": "data",
    "cpus": "cores",
    "ncpus": "cores",
    "mem": "memory",
    "ram": "memory",
    "walltime": "time",
    "duration": "time",
    "partition": "queue",
    "account": "project",
    "container": "image",
    "environment": "env",
}


def _same_meaning(name: str, names: frozenset[str]) -> list[str]:
    meant = SYNONYMS.get(name.lower(), "")
    return [meant] if meant in names else []


def refuse_unknown_fields(value: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    """Raise BadRequest for an unknown field, so that typing errors are reported instead of ignored."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    for name in find_unknown(value, names):
        refuse(
            f"{path}.{name}" if path else name,
            f"there is no field {quote_value(name)} here",
            suggest_field(name, names),
        )


def find_unknown(value: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """Return the names of unknown fields; fields that begin with `x-` are extensions and are ignored."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    return [name for name in value if name not in names and not name.startswith("x-")]


def suggest_field(name: str, names: frozenset[str]) -> str:
    """Return a hint which field an unknown name may have been meant to be."""
    close = _same_meaning(name, names) or difflib.get_close_matches(name, names, 1)
    return f"Did you mean {close[0]}?" if close else f"There are: {', '.join(sorted(names))}."
