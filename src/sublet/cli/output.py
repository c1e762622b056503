"""Draws what commands say: for people, as JSON, or only what a script needs. Data on stdout, notes on stderr."""

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
    """Where a command's words go."""

    def __init__(self, json: bool = False, quiet: bool = False, verbose: bool = False) -> None:
        """One of three manners: people's words, JSON, or quiet."""
        self.json, self.quiet, self.verbose = json, quiet, verbose

    def show(self, value: Any, human: Callable[[], Iterable[str]], quiet: Callable[[], Iterable[str]]) -> None:
        """Print a value in the manner that was asked for."""
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
        """Tell a person something beside the data."""
        if not self.quiet:
            say(text)

    def detail(self, text: str) -> None:
        """Tell it only to those who want to know more."""
        if self.verbose:
            say(text)

    @property
    def for_people(self) -> bool:
        """Whether it is drawn for people."""
        return not (self.json or self.quiet)

    @property
    def can_ask(self) -> bool:
        """Whether someone sits there who could answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.quiet

    def link(self) -> Link:
        """The way to the service; what is waited for is told as a note."""
        from sublet.client.address import find_address  # not needed to show help
        from sublet.client.link import Link

        link = Link(find_address(), note=self.note)
        self.detail(f"service: {link.address.text}")
        return link


def is_aligned(line: str) -> bool:
    """Whether a line has columns, which breaking it between words would undo."""
    return "  " in line.strip()


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip()))


def say(text: str) -> None:
    """Write lines to stderr, broken between words where they are read on a terminal."""
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
    """Rows under their headings, in aligned columns; a column that is empty throughout is left out.

    On a terminal it fits the width: long cells are folded, but not in the first column nor in those to `keep`; the
    `least` important columns are left out first, and what still has no room goes below its row. Elsewhere it is as wide
    as it is. Sentences in cells name times by the clock of this machine.
    """
    from sublet.cli.columns import Columns, Manner  # help has no tables

    are_words = [head_of_it not in VERBATIM for head_of_it in head]
    body = [[_cell(cell, has_words) for cell, has_words in zip(row, are_words, strict=True)] for row in rows]
    kept = [column for column in range(len(head)) if any(row[column] for row in body)]
    last = kept[-1] if kept else 0  # an empty cell at the end of a line needs no sign
    cells = [[row[column] or ("" if column == last else "-") for column in kept] for row in body]
    drawn = Columns([head[column] for column in kept], cells, Manner(keep, least))
    return [f"{margin}{line}" for line in drawn.fit(_room(margin))]


def _cell(cell: str, has_words: bool) -> str:
    text = tame(str(cell))
    return with_local_times(text) if has_words else text


def _room(margin: str) -> int | None:
    """The columns that are left on a terminal beside a margin."""
    screen = columns_of(sys.stdout)
    return None if screen is None else screen - len(margin)


def tame(text: str) -> str:
    """Text on one line that can't do anything to a terminal, whoever wrote it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def pairs(items: Iterable[tuple[str, str]], *, margin: str = "") -> list[str]:
    """Names and values, one below the other; what is empty is left out, and what is long goes on in the next line."""
    kept = [(name, _cell(value, name.upper() not in VERBATIM)) for name, value in items if value]
    width = max((len(name) for name, _ in kept), default=0)
    screen = _room(margin)
    room = None if screen is None else max(screen - width - 2, 20)
    lines: list[str] = []
    for name, value in kept:
        shown = [paint_phase(value)] if name == "phase" else wrap(value, room)
        lines += [f"{margin}{(name if n == 0 else '').ljust(width)}  {line}" for n, line in enumerate(shown)]
    return lines
