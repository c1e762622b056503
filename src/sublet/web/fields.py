"""One field of a form, as `templates/fields.html` renders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TICKED = "true"  # the value that a checkbox sends


@dataclass(frozen=True, slots=True)
class Field:
    """A form field: its name, id, label, type of control and value."""

    key: str
    id: str
    label: str
    control: str  # check, choice, lines, or the type of an input
    value: str = ""
    hint: str = ""
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()  # value → label
    attributes: Mapping[str, str] = field(default_factory=dict)
