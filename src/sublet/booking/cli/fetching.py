"""Fetches the files that a session left."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from sublet.booking.calls import results
from sublet.booking.views.results import ResultList
from sublet.cli.output import Output
from sublet.cli.texts import size
from sublet.client.fetching import choose_results, fetch
from sublet.client.link import Link
from sublet.kernel.errors import SubletError
from sublet.kernel.texts import count_text


def check_folder(_: click.Context, __: click.Parameter, place: str | None) -> str | None:
    """Refuse a directory into which nothing could be fetched, before anything is run for it."""
    if place is not None:
        _require_folder(os.path.abspath(place))
    return place


def check_file(_: click.Context, __: click.Parameter, place: str | None) -> str | None:
    """Refuse a file that could not be written, before anything is fetched for it."""
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


def fetch_all(
    out: Output, link: Link, session: str, directory: str, keep: bool = False, wanted: Sequence[str] = ()
) -> list[str]:
    """Fetch files into a directory; returns where they are now. If that was all, they go where it was a guest."""
    left = link.do(results.results(session))
    some = choose_results(left, wanted)
    os.makedirs(directory, exist_ok=True)
    made = fetch(link.stream, session, some, directory)
    amount = f"{count_text(len(some.items), 'file')} ({size(sum(file.size for file in some.items))}){count_empty(some)}"
    out.note(f"fetched {amount} into {directory}")
    if not keep and (len(some.items), some.folders) == (len(left.items), left.folders):
        try:
            link.do(results.fetched(session))
        except SubletError as error:
            out.note(f"its files stay on the system for their keep time: {error.message}")
    return made


def count_empty(left: ResultList) -> str:
    """How many folders with nothing in them a session left beside its files, in words."""
    return f" and {count_text(len(left.folders), 'empty folder')}" if left.folders else ""
