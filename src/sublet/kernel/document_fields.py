"""Reading a document's fields: each reader takes a value and its path, and says what is wrong there."""

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
    """This field can't be understood: it is an error, whoever reads the document."""
    raise BadRequest(detail=f"{path}: {detail}", hint=hint, field=path)


def decline(path: str, detail: str, hint: str = "", kind: str = INVALID, wanted: str = "") -> NoReturn:
    """This field can be understood, and what it asks for can't be had: the answer to the request is NO."""
    reason = Reason(kind, path, f"{path}: {detail.rstrip('.')}.", wanted=wanted, nearest=hint)
    raise BadRequest(detail=f"{path}: {detail}", hint=hint, field=path, reason=reason)


def read_possible(path: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `read` makes of a field whose form is right; what it complains of can't be had, and the answer is NO."""
    try:
        return read(*args, **kwargs)
    except BadRequest as error:
        decline(path, error.clause, error.advice)


def at(path: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `read` makes of a field; its complaint names the field."""
    try:
        return read(*args, **kwargs)
    except BadRequest as error:
        if "field" in error.values:
            raise
        raise BadRequest(detail=f"{path}: {error.clause}", hint=error.advice, field=path) from None


def a_map(value: Any, path: str) -> Mapping[str, Any]:
    """A map of names to values."""
    if not isinstance(value, Mapping):
        refuse(path, f"{quote_value(value)} is not a map", "Write it as `name: value` pairs.")
    return value


def a_list(value: Any, path: str) -> Sequence[Any]:
    """A list, not too long."""
    if not isinstance(value, list | tuple):
        refuse(path, f"{quote_value(value)} is not a list", "Write one item a line, each after a dash.")
    if len(value) > MOST_ITEMS:
        decline(path, f"it has {len(value)} items", f"At most {MOST_ITEMS} are read.")
    return value


def a_text(value: Any, path: str, most: int = MOST_TEXT) -> str:
    """Text, not empty and not too long."""
    if not isinstance(value, str):
        refuse(path, f"{quote_value(value)} is not text", "Put it in quotes.")
    if not value.strip():
        decline(path, "it is empty", kind=MISSING)
    if len(value) > most:
        decline(path, f"it has {len(value)} characters", f"At most {most} are read.")
    return value


def a_name(value: Any, path: str) -> str:
    """A name: any one line of text. It is data wherever it goes."""
    name = a_text(str(value) if isinstance(value, int) and not isinstance(value, bool) else value, path, 200)
    if not name.isprintable():
        decline(path, f"{quote_value(name)} has characters that can't be printed")
    return name


def a_number(value: Any, path: str) -> float:
    """A number, finite; one that is larger than numbers are is the largest."""
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
    """No field that means nothing here: a typing error is better said than ignored."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    for name in find_unknown(value, names):
        refuse(
            f"{path}.{name}" if path else name,
            f"there is no field {quote_value(name)} here",
            suggest_field(name, names),
        )


def find_unknown(value: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """The fields that mean nothing here; those that begin with `x-` are nobody's business."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    return [name for name in value if name not in names and not name.startswith("x-")]


def suggest_field(name: str, names: frozenset[str]) -> str:
    """What a field that means nothing here may have been meant to be."""
    close = _same_meaning(name, names) or difflib.get_close_matches(name, names, 1)
    return f"Did you mean {close[0]}?" if close else f"There are: {', '.join(sorted(names))}."
