"""Fetches the files that a session left."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.cli.output import Output
from sublet.cli.texts import size
from sublet.client.calls import results
from sublet.client.fetching import chosen, fetch_file
from sublet.client.link import Link
from sublet.core.texts import counted
from sublet.errors import SubletError


def fetch_all(
    out: Output, link: Link, session: str, directory: str, keep: bool = False, wanted: Sequence[str] = ()
) -> list[str]:
    """Fetch files into a directory; returns where they are now. If that was all, they go where it was a guest."""
    files = link.do(results.results(session)).items
    some = chosen(files, wanted)
    made = [fetch_file(link.stream, session, file, directory) for file in some]
    out.note(f"fetched {counted(len(made), 'file')} ({size(sum(file.size for file in some))}) into {directory}")
    if not keep and len(some) == len(files):
        try:
            link.do(results.fetched(session))
        except SubletError as error:
            out.note(f"its files stay on the system for their keep time: {error.message}")
    return made
