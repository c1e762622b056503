"""Reads a request's options for a cluster's scheduler, by the table of all options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sublet.booking.documents.reading import Reading
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.scheduler import MOST_FREE, NAME, VALUE, SchedulerOptions, Spec, scheduler_specs
from sublet.kernel.document_fields import a_list, a_name, decline, refuse


def read_scheduler(document: Mapping[str, Any], reading: Reading) -> SchedulerOptions:
    """Read the scheduler options in a document; what is wrong with them is noted as a reason."""
    given = {name: spec for name, spec in scheduler_specs().items() if document.get(name) is not None}
    read = {name: reading.attempt(None, read_option, document[name], spec) for name, spec in given.items()}
    return SchedulerOptions(**{name: value for name, value in read.items() if value is not None})


def read_option(value: Any, spec: Spec) -> Any:
    """Read and check one option; raise BadRequest if it is wrong."""
    return _READERS[spec.kind](value, spec)


def _text(value: Any, spec: Spec) -> str:
    text = a_name(value, spec.name)
    if spec.pattern and not re.fullmatch(spec.pattern, text):
        decline(
            spec.name, f"{quote_value(text)} is nothing that a scheduler knows", f"{spec.help} Write {spec.metavar}."
        )
    return text


def _number(value: Any, spec: Spec) -> int:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        refuse(spec.name, f"{quote_value(value)} is not a whole number", f"Write one from 0 to {spec.most}.")
    if not 0 <= int(text) <= spec.most:
        decline(spec.name, f"{text} is out of range", f"Write a number from 0 to {spec.most}.", wanted=text)
    return int(text)


def _switch(value: Any, spec: Spec) -> bool:
    if not isinstance(value, bool):
        refuse(spec.name, f"{quote_value(value)} is neither true nor false")
    return value


def _free(value: Any, spec: Spec) -> tuple[str, ...]:
    """Read a map of names and values, or a list of `NAME=VALUE`; `true` means a name without a value."""
    pairs = value.items() if isinstance(value, Mapping) else [_pair(item) for item in a_list(value, spec.name)]
    if len(pairs) > MOST_FREE:
        decline(spec.name, f"there are {len(pairs)} of them", f"At most {MOST_FREE} are read.")
    return tuple(_word(str(name), item, spec) for name, item in pairs if item is not False and item is not None)


def _pair(item: Any) -> tuple[str, Any]:
    name, equals, value = a_name(item, "options").removeprefix("--").partition("=")
    return name, value if equals else True


def _word(name: str, value: Any, spec: Spec) -> str:
    path = f"{spec.name}.{name}"
    if not NAME.fullmatch(name):
        decline(spec.name, f"{quote_value(name)} is not the name of an option", "Write one as sbatch has it: switches.")
    if value is True:
        return name
    text = str(value) if isinstance(value, str | int | float) else ""
    if not VALUE.fullmatch(text):
        decline(path, f"{quote_value(value)} can't be its value", "Write one line of plain characters.")
    return f"{name}={text}"


_READERS: dict[type, Callable[[Any, Spec], Any]] = {str: _text, int: _number, bool: _switch, tuple: _free}
