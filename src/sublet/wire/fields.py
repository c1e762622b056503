"""Reading a document's fields: each reader takes a value and its path, and says what is wrong there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

from sublet.core.amounts import shown
from sublet.errors import BadRequest

P = ParamSpec("P")
T = TypeVar("T")
MOST_TEXT = 1024
MOST_ITEMS = 1000
MOST_NUMBER = 1e300


def refuse(path: str, detail: str, hint: str = "") -> NoReturn:
    """This field can't be understood."""
    raise BadRequest(detail=f"{path}: {detail}", hint=hint, field=path)


def at(path: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `read` makes of a field; its complaint names the field."""
    try:
        return read(*args, **kwargs)
    except BadRequest as error:
        if "field" in error.values:
            raise
        message = error.message[:-1] if error.message.endswith(".") else error.message
        raise BadRequest(detail=f"{path}: {message}", hint=error.advice, field=path) from None


def a_map(value: Any, path: str) -> Mapping[str, Any]:
    """A map of names to values."""
    if not isinstance(value, Mapping):
        refuse(path, f"{shown(value)} is not a map", "Write it as `name: value` pairs.")
    return value


def a_list(value: Any, path: str) -> Sequence[Any]:
    """A list, not too long."""
    if not isinstance(value, list | tuple):
        refuse(path, f"{shown(value)} is not a list", "Write one item a line, each after a dash.")
    if len(value) > MOST_ITEMS:
        refuse(path, f"it has {len(value)} items", f"At most {MOST_ITEMS} are read.")
    return value


def a_text(value: Any, path: str, most: int = MOST_TEXT) -> str:
    """Text, not empty and not too long."""
    if not isinstance(value, str):
        refuse(path, f"{shown(value)} is not text", "Put it in quotes.")
    if not value.strip():
        refuse(path, "it is empty")
    if len(value) > most:
        refuse(path, f"it has {len(value)} characters", f"At most {most} are read.")
    return value


def a_name(value: Any, path: str) -> str:
    """A name: any one line of text. It is data wherever it goes."""
    name = a_text(str(value) if isinstance(value, int) and not isinstance(value, bool) else value, path, 200)
    if not name.isprintable():
        refuse(path, f"{shown(name)} has characters that can't be printed")
    return name


def a_number(value: Any, path: str) -> float:
    """A number, finite."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not -MOST_NUMBER < number < MOST_NUMBER:
        refuse(path, f"{shown(value)} is not a number")
    return float(number)


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


def known_only(value: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    """No field that means nothing here: a typing error is better said than ignored."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    for name in value:
        if name not in names and not name.startswith("x-"):
            close = _same_meaning(name, names) or difflib.get_close_matches(name, names, 1)
            hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(sorted(names))}."
            refuse(f"{path}.{name}" if path else name, f"there is no field {shown(name)} here", hint)
