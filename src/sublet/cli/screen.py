"""The terminal: how wide it is, how wide text is on it, and whether it has colours."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import TextIO

from sublet.booking.model.phases import Phase

ELLIPSIS = "…"
NARROWEST = 20  # columns; whatever is narrower is no terminal that anyone reads
CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
# What each phase looks like; what is over and went well needs no colour.
PHASES: dict[str, str] = {
    Phase.RUNNING: "green",
    Phase.AVAILABLE: "green",
    Phase.FAILED: "red",
    Phase.ACCEPTED: "yellow",
    Phase.WAITING: "yellow",
    Phase.PREPARING: "yellow",
    Phase.RELEASING: "yellow",
    Phase.OFFERED: "cyan",
    Phase.CANCELLED: "dim",
    Phase.EXPIRED: "dim",
    Phase.REJECTED: "dim",
}
# Text that is typed is never broken: what stands in backticks, or a command at the end of a line.
_COLOUR = re.compile(r"\033\[[0-9;]*m")
_PIECES = re.compile(r"`[^`]*`\S*|sublet [^.;,]*$|\S+")


def columns_of(stream: TextIO | None) -> int | None:
    """How many columns a terminal has; None where what is written goes elsewhere, and may be of any width."""
    if not is_terminal(stream):
        return None
    typed = os.environ.get("COLUMNS", "")
    try:
        columns = int(typed) if typed.isdigit() else os.get_terminal_size(stream.fileno()).columns if stream else 0
    except (OSError, ValueError):
        columns = 0
    return max(columns, NARROWEST) if columns else 80


def is_terminal(stream: TextIO | None) -> bool:
    """Whether someone reads it as it is written."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def has_colours(stream: TextIO | None) -> bool:
    """Whether to write in colours there: as NO_COLOR, FORCE_COLOR and TERM say, else on terminals."""
    environment = os.environ
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if environment.get("TERM") == "dumb" or environment.get("CLICOLOR") == "0":
        return False
    return is_terminal(stream)


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Text in a colour, where there are colours; stdout is meant if nothing else is."""
    if not text or colour not in CODES or not has_colours(stream or sys.stdout):
        return text
    return f"\033[{CODES[colour]}m{text}\033[0m"


def paint_phase(text: str, stream: TextIO | None = None) -> str:
    """A phase in its colour; the spaces around it have none."""
    phase = text.strip()
    return text.replace(phase, paint(phase, PHASES.get(phase, ""), stream)) if phase else text


def width_of(text: str) -> int:
    """How many columns text takes: those of East Asia take two, marks over letters none."""
    if "\033" in text:
        text = _COLOUR.sub("", text)
    return len(text) if text.isascii() else sum(width for _, width in _clusters(text))


def fit(text: str, width: int) -> str:
    """Text in so many columns at most; an ellipsis stands for what is left out."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for cluster, taken in _clusters(text):
        if used + taken > width - 1:
            break
        kept.append(cluster)
        used += taken
    return f"{''.join(kept).rstrip()}{ELLIPSIS}"[: max(width, 1)]


def pad(text: str, width: int) -> str:
    """Text with spaces after it, up to so many columns."""
    return text + " " * max(0, width - width_of(text))


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """Text in lines of so many columns, broken between words; what can be typed or clicked is in one piece."""
    if width is None or width_of(text) <= width:
        return [text]
    lead = text[: len(text) - len(text.lstrip())]
    lines, line = [], lead
    for piece in _PIECES.findall(text):
        joined = f"{line} {piece}" if line.strip() else f"{line}{piece}"
        if width_of(joined) > width and line.strip():
            lines.append(line)
            joined = f"{indent}{piece}"
        line = joined
    return [*lines, line]


def longest_piece(text: str) -> int:
    """The columns that the widest piece of it takes, which is never broken."""
    return max(map(width_of, _PIECES.findall(text)), default=0)


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """Characters with the marks that belong to them, and the columns that they take."""
    cluster, width = "", 0
    for char in text:
        own = _char_width(char)
        if own == 0 and cluster:
            cluster, width = cluster + char, 2 if char == "\ufe0f" else width  # as an emoji it is wide
            continue
        if cluster:
            yield cluster, width
        cluster, width = char, own
    if cluster:
        yield cluster, width


@cache
def _char_width(char: str) -> int:
    import unicodedata  # ASCII needs none of it

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
