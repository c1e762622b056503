"""`result`: the files that a session left."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import click

from sublet.cli.command import command
from sublet.cli.fetching import fetch, fetch_all
from sublet.cli.output import Output, table
from sublet.cli.texts import size, when
from sublet.client.calls import results
from sublet.client.link import Link


@command(
    "result",
    "sublet result 3f2a",
    "sublet result 3f2a out.csv > out.csv",
    "sublet result 3f2a --out results",
)
@click.option("--out", "to", metavar="DIR", help="Fetch into this directory: PATH, or all files.")
@click.option("--archive", metavar="FILE", help="Fetch all files as one tar.gz.")
@click.option("--keep", is_flag=True, help="Leave them on the system too, though all are fetched.")
@click.argument("session")
@click.argument("path", required=False)
def result(out: Output, to: str | None, archive: str | None, keep: bool, session: str, path: str | None) -> None:
    """List the files that a session left; or print one, or fetch them.

    When all were fetched with --out, a cluster where the session was a guest is cleaned of it; what it printed can
    still be read. With --keep they stay for their keep time.
    """
    link = out.link()
    if archive:
        with open(archive, "wb") as file:
            file.writelines(link.stream(results.archive(session)))
        out.show({"archive": archive}, lambda: [archive], lambda: [archive])
    elif to is not None:
        made = [fetch(link, session, path, os.path.join(to, path))] if path else fetch_all(out, link, session, to, keep)
        out.show({"files": made}, lambda: made, lambda: made)
    elif path:
        for piece in link.stream(results.result(session, path)):
            sys.stdout.buffer.write(piece)
    else:
        _list(out, link, session)


def _list(out: Output, link: Link, session: str) -> None:
    view, now = link.do(results.results(session)), datetime.now(UTC)
    rows = [(file.path, size(file.size), when(file.modified, now)) for file in view.items]
    out.show(
        view,
        lambda: table(("FILE", "SIZE", "MODIFIED"), rows) if rows else [],
        lambda: (file.path for file in view.items),
    )
    if not rows and out.for_people:
        out.note("It left no files.")
