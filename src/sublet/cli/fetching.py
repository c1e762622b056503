"""Fetches the files that a session left."""

from __future__ import annotations

import os

from sublet.cli.output import Output
from sublet.cli.texts import counted, size
from sublet.client.calls import results
from sublet.client.link import Link
from sublet.errors import SubletError


def fetch_all(out: Output, link: Link, session: str, directory: str, keep: bool = False) -> list[str]:
    """Fetch every file into a directory; returns where they are now. Where it was a guest they go, unless kept."""
    files = link.do(results.results(session)).items
    made = [fetch(link, session, file.path, os.path.join(directory, _inside(file.path))) for file in files]
    out.note(f"fetched {counted(len(made), 'file')} ({size(sum(file.size for file in files))}) into {directory}")
    if not keep:
        try:
            link.do(results.fetched(session))
        except SubletError as error:
            out.note(f"its files stay on the system for their keep time: {error.message}")
    return made


def fetch(link: Link, session: str, path: str, to: str) -> str:
    """Fetch one file; it appears when it is whole."""
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    part = f"{to}.part"
    with open(part, "wb") as file:
        file.writelines(link.stream(results.result(session, path)))
    os.replace(part, to)
    return to


def _inside(path: str) -> str:
    """A path that stays below the directory, whatever a service says."""
    kept = os.path.normpath(path)
    if os.path.isabs(kept) or kept.split("/")[0] == "..":
        raise SubletError(f"The service names a file outside of the session: {path}", hint="It is not fetched.")
    return kept
