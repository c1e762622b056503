"""Fetches the files that a session left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import click

from sublet.booking.calls import results
from sublet.booking.views.results import ResultList
from sublet.cli.output import Output
from sublet.cli.texts import size
from sublet.client.fetching import choose_results, fetch, find_files_there
from sublet.client.link import Link
from sublet.kernel.errors import SubletError
from sublet.kernel.texts import count_text


def check_folder(_: click.Context, __: click.Parameter, place: str | None) -> str | None:
    """Refuse a directory that can't be written, before anything is run for it."""
    if place is not None:
        _require_folder(os.path.abspath(place))
    return place


def check_file(_: click.Context, __: click.Parameter, place: str | None) -> str | None:
    """Refuse a file that can't be written, before anything is fetched for it."""
    if place is not None and os.path.isdir(place):
        raise click.BadParameter(f"{place} is a directory; name a file.")
    if place is not None:
        _require_folder(os.path.dirname(os.path.abspath(place)), exists=True)
    return place


def _require_folder(place: str, exists: bool = False) -> None:
    there = place
    while not exists and not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.lexists(there):
        raise click.BadParameter(f"there is no directory {there}.")
    if not os.path.isdir(there):
        raise click.BadParameter(f"{there} is not a directory.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise click.BadParameter(f"{there} can't be written.")


overwrite_option = click.option(
    "--overwrite", is_flag=True, help="With --out: replace other files of the same names that are there."
)


@dataclass(frozen=True)
class Destination:
    """Where a session's files are fetched to, and whether to replace files there and to leave them on the system."""

    directory: str
    keep: bool = False  # leave them on the system too
    overwrite: bool = False  # replace other files of the same names

    @classmethod
    def read(cls, to: str | None, *, keep: bool = False, overwrite: bool = False) -> Destination | None:
        """Return the destination that the options describe; None without --out."""
        return None if to is None else cls(to, keep, overwrite)


def fetch_all(out: Output, link: Link, session: str, to: Destination, wanted: Sequence[str] = ()) -> list[str]:
    """Fetch files into a directory and return their paths; once all are fetched, a guest system's copies are removed.

    Raises InTheWay, and fetches nothing, if different files of the same names are there and are not to be replaced.
    """
    left = link.do(results.results(session))
    some = choose_results(left, wanted)
    there = find_files_there(link.stream, session, some, to.directory, overwrite=to.overwrite)
    os.makedirs(to.directory, exist_ok=True)
    made = fetch(link.stream, session, some, to.directory, there)
    new = [file for file in some.items if file.path not in there]
    amount = f"{count_text(len(new), 'file')} ({size(sum(file.size for file in new))}){count_empty(some)}"
    before = f"; {count_text(len(there), 'file')} there already" if there else ""
    out.note(f"fetched {amount} into {to.directory}{before}")
    if not to.keep and (len(some.items), some.folders) == (len(left.items), left.folders):
        try:
            link.do(results.fetched(session))
        except SubletError as error:
            out.note(f"its files stay on the system for their keep time: {error.message}")
    return made


def count_empty(left: ResultList) -> str:
    """Return how many empty folders a session left, in words; empty if none."""
    return f" and {count_text(len(left.folders), 'empty folder')}" if left.folders else ""
