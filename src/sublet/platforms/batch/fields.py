"""Types of some settings of a batch system: names for a scheduler, and configuration lines for pilots."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from sublet.booking.model.scheduler import PLAIN
from sublet.systems.model.pilot_config import check_lines

WORD = re.compile(PLAIN)


def _pilot_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    if problems := check_lines(lines):
        raise ValueError("; ".join(problems))
    return lines


def is_name(word: str) -> bool:
    """Whether this can be the name of a queue, a project or the like; an empty name counts."""
    return not word or bool(WORD.fullmatch(word))


def _name(word: str) -> str:
    if not is_name(word):
        raise ValueError(f"{word!r} can't be a name that a scheduler knows")
    return word


Name = Annotated[str, AfterValidator(_name)]
PilotLines = Annotated[tuple[str, ...], AfterValidator(_pilot_lines)]
