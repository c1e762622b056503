"""Prints the output of commands: for people, as JSON, or only what scripts need. Data on stdout, notes on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from sublet.cli.screen import columns_of, has_colours, paint_phase, wrap
from sublet.cli.texts import with_local_times

if TYPE_CHECKING:
    from sublet.client.link import Link

VERBATIM = frozenset({"FILE", "ID", "NAME", "PAGE", "PATH", "SESSION", "TIME"})  # columns without sentences


class Output:
    """The output of a command."""

    def __init__(self, json: bool = False, quiet: bool = False, verbose: bool = False) -> None:
        """Choose the format: for people, JSON, or quiet."""
        self.json, self.quiet, self.verbose = json, quiet, verbose

    def show(self, value: Any, human: Callable[[], Iterable[str]], quiet: Callable[[], Iterable[str]]) -> None:
        """Print a value in the chosen format."""
        if self.json:
            self.data(value)
            return
        if self.quiet:
            for line in quiet():
                click.echo(line)
            return
        width = columns_of(sys.stdout)
        for line in human():
            line = line if is_aligned(line) else with_local_times(line)
            for part in [line] if is_aligned(line) else wrap(line, width, _indent(line)):
                click.echo(part, color=has_colours(sys.stdout))

    def data(self, value: Any) -> None:
        """Print a value as JSON."""
        import json

        from sublet.kernel.views import plain

        click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))

    def note(self, text: str) -> None:
        """Print a note to stderr, unless quiet."""
        if not self.quiet:
            say(text)

    def detail(self, text: str) -> None:
        """Print a note to stderr, only with --verbose."""
        if self.verbose:
            say(text)

    @property
    def for_people(self) -> bool:
        """Whether the output is formatted for people."""
        return not (self.json or self.quiet)

    @property
    def can_ask(self) -> bool:
        """Whether there is a terminal on which a question can be answered."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.quiet

    def link(self) -> Link:
        """Return the connection to the service, which reports as notes what it waits for."""
        from sublet.client.address import find_address  # not needed to show help
        from sublet.client.link import Link

        link = Link(find_address(), note=self.note)
        self.detail(f"service: {link.address.text}")
        return link


def is_aligned(line: str) -> bool:
    """Whether a line has columns, which wrapping would destroy."""
    return "  " in line.strip()


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip()))


def say(text: str) -> None:
    """Write lines to stderr, wrapped to the width of a terminal."""
    width = columns_of(sys.stderr)
    for line in with_local_times(text).split("\n"):
        for part in [line] if is_aligned(line) else wrap(line, width, _indent(line)):
            click.echo(part, err=True, color=has_colours(sys.stderr))


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    keep: Collection[str] = (),
    least: Sequence[str] = (),
    margin: str = "",
) -> list[str]:
    """Return rows under their headings in aligned columns; columns without any content are omitted.

    On a terminal, the table fits the width: long cells are folded, except in the first column and in those to `keep`;
    the `least` important columns are dropped first, and what still doesn't fit goes below its row. Elsewhere the width
    is unlimited. Times within sentences are shown in local time.
    """
    from sublet.cli.columns import Columns, Manner  # help has no tables

    are_words = [head_of_it not in VERBATIM for head_of_it in head]
    body = [[_cell(cell, has_words) for cell, has_words in zip(row, are_words, strict=True)] for row in rows]
    kept = [column for column in range(len(head)) if any(row[column] for row in body)]
    last = kept[-1] if kept else 0  # an empty cell at the end of a line needs no dash
    cells = [[row[column] or ("" if column == last else "-") for column in kept] for row in body]
    drawn = Columns([head[column] for column in kept], cells, Manner(keep, least))
    return [f"{margin}{line}" for line in drawn.fit(_room(margin))]


def _cell(cell: str, has_words: bool) -> str:
    text = tame(str(cell))
    return with_local_times(text) if has_words else text


def _room(margin: str) -> int | None:
    """Return the width of the terminal beside a margin; None if there is no terminal."""
    screen = columns_of(sys.stdout)
    return None if screen is None else screen - len(margin)


def tame(text: str) -> str:
    """Return the text on one line, without control characters, whoever wrote it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def pairs(items: Iterable[tuple[str, str]], *, margin: str = "") -> list[str]:
    """Return aligned lines of names and values; empty values are omitted, and long ones wrapped."""
    kept = [(name, _cell(value, name.upper() not in VERBATIM)) for name, value in items if value]
    width = max((len(name) for name, _ in kept), default=0)
    screen = _room(margin)
    room = None if screen is None else max(screen - width - 2, 20)
    lines: list[str] = []
    for name, value in kept:
        shown = [paint_phase(value)] if name == "phase" else wrap(value, room)
        lines += [f"{margin}{(name if n == 0 else '').ljust(width)}  {line}" for n, line in enumerate(shown)]
    return lines
