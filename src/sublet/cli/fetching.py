"""Fetches the files that a session left."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.cli.output import Output
from sublet.cli.texts import size
from sublet.client.calls import results
from sublet.client.fetching import chosen, fetch
from sublet.client.link import Link
from sublet.core.texts import counted
from sublet.errors import SubletError
from sublet.wire.v1.results import ResultList


def fetch_all(
    out: Output, link: Link, session: str, directory: str, keep: bool = False, wanted: Sequence[str] = ()
) -> list[str]:
    """Fetch files into a directory; returns where they are now. If that was all, they go where it was a guest."""
    left = link.do(results.results(session))
    some = chosen(left, wanted)
    made = fetch(link.stream, session, some, directory)
    told = f"{counted(len(some.items), 'file')} ({size(sum(file.size for file in some.items))}){count_empty(some)}"
    out.note(f"fetched {told} into {directory}")
    if not keep and (len(some.items), some.folders) == (len(left.items), left.folders):
        try:
            link.do(results.fetched(session))
        except SubletError as error:
            out.note(f"its files stay on the system for their keep time: {error.message}")
    return made


def count_empty(left: ResultList) -> str:
    """How many folders with nothing in them a session left beside its files, in words."""
    return f" and {counted(len(left.folders), 'empty folder')}" if left.folders else ""
