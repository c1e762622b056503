"""Draws what commands say: for people, as JSON, or only what a script needs. Data on stdout, notes on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sublet.client.link import Link


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
        for line in quiet() if self.quiet else human():
            click.echo(line)

    def data(self, value: Any) -> None:
        """Print a value as JSON."""
        import json

        from sublet.wire.reader import plain

        click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))

    def note(self, text: str) -> None:
        """Tell a person something beside the data."""
        if not self.quiet:
            click.echo(text, err=True)

    def detail(self, text: str) -> None:
        """Tell it only to those who want to know more."""
        if self.verbose:
            click.echo(text, err=True)

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


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows under their headings, in aligned columns; a column that is empty throughout is left out."""
    body = [[tame(str(cell)) for cell in row] for row in rows]
    kept = [column for column in range(len(head)) if any(row[column] for row in body)]
    last = kept[-1] if kept else 0  # an empty cell at the end of a line needs no sign
    cells = [[row[column] or ("" if column == last else "-") for column in kept] for row in body]
    lines = [[head[column] for column in kept], *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(kept))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def tame(text: str) -> str:
    """Text on one line that can't do anything to a terminal, whoever wrote it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def pairs(items: Iterable[tuple[str, str]]) -> list[str]:
    """Names and values, one below the other; what is empty is left out."""
    kept = [(name, tame(value)) for name, value in items if value]
    width = max((len(name) for name, _ in kept), default=0)
    return [f"{name.ljust(width)}  {value}" for name, value in kept]
