"""One field of a form, as `templates/fields.html` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TICKED = "true"  # what a box sends


@dataclass(frozen=True, slots=True)
class Field:
    """A field: the name under which it is sent, what it is called on the page, how it is asked, and what it holds."""

    key: str
    id: str
    label: str
    control: str  # check, choice, lines, or the type of an input
    value: str = ""
    hint: str = ""
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()  # what is sent, and its words
    attributes: Mapping[str, str] = field(default_factory=dict)
