"""The terminal: its width, the width of text on it, and its colours."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import TextIO

from sublet.booking.model.phases import Phase

ELLIPSIS = "…"
NARROWEST = 20  # columns; smaller sizes aren't believed
CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
# The colour of each phase; completed sessions have none.
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
# Text that people copy isn't wrapped: text in backticks, or a command at the end of a line.
_COLOUR = re.compile(r"\033\[[0-9;]*m")
_PIECES = re.compile(r"`[^`]*`\S*|sublet [^.;,]*$|\S+")


def columns_of(stream: TextIO | None) -> int | None:
    """Return the width of a terminal; None if the stream isn't one, and lines may have any length."""
    if not is_terminal(stream):
        return None
    typed = os.environ.get("COLUMNS", "")
    try:
        columns = int(typed) if typed.isdigit() else os.get_terminal_size(stream.fileno()).columns if stream else 0
    except (OSError, ValueError):
        columns = 0
    return max(columns, NARROWEST) if columns else 80


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # the stream is closed
        return False


def has_colours(stream: TextIO | None) -> bool:
    """Whether to write colours: as NO_COLOR, FORCE_COLOR and TERM say, or else on terminals."""
    environment = os.environ
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if environment.get("TERM") == "dumb" or environment.get("CLICOLOR") == "0":
        return False
    return is_terminal(stream)


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Return the text in a colour, if the stream (by default stdout) has colours."""
    if not text or colour not in CODES or not has_colours(stream or sys.stdout):
        return text
    return f"\033[{CODES[colour]}m{text}\033[0m"


def paint_phase(text: str, stream: TextIO | None = None) -> str:
    """Return a phase in its colour, without colouring the spaces around it."""
    phase = text.strip()
    return text.replace(phase, paint(phase, PHASES.get(phase, ""), stream)) if phase else text


def width_of(text: str) -> int:
    """Return how many columns a text takes: East Asian wide characters take two, combining marks none."""
    if "\033" in text:
        text = _COLOUR.sub("", text)
    return len(text) if text.isascii() else sum(width for _, width in _clusters(text))


def fit(text: str, width: int) -> str:
    """Return the text within this width, cut with an ellipsis if necessary."""
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
    """Return the text padded with spaces to this width."""
    return text + " " * max(0, width - width_of(text))


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """Wrap text between words; pieces that can be typed or clicked are kept whole."""
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
    """Return the width of the widest piece that wrapping keeps whole."""
    return max(map(width_of, _PIECES.findall(text)), default=0)


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield each character with its combining marks, and the columns that they take."""
    cluster, width = "", 0
    for char in text:
        own = _char_width(char)
        if own == 0 and cluster:
            cluster, width = cluster + char, 2 if char == "\ufe0f" else width  # the emoji form is wide
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
