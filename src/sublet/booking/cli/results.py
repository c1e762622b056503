"""`result`: the files that a session left."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from sublet.booking.calls import results
from sublet.booking.cli.fetching import check_file, check_folder, count_empty, fetch_all
from sublet.booking.views.results import ResultList
from sublet.cli.command import command
from sublet.cli.output import Output, table
from sublet.cli.texts import size, when
from sublet.client.fetching import choose_results
from sublet.client.link import Link
from sublet.kernel.texts import count_text


@command(
    "result",
    "sublet result 3f2a",
    "sublet result 3f2a out.csv > out.csv",
    "sublet result 3f2a 'plots/*.png' --out results",
    "sublet result --table 3f2a > table.csv",
)
@click.option("--list", "-l", "only_list", is_flag=True, help="List what PATH means, with sizes; fetch nothing.")
@click.option(
    "--out",
    "to",
    metavar="DIR",
    callback=check_folder,
    help="Fetch into this directory: what PATH means, or all files.",
)
@click.option("--archive", metavar="FILE", callback=check_file, help="Fetch all files as one tar.gz.")
@click.option("--table", "as_table", is_flag=True, help="Of a sweep: print parameters and results, as CSV.")
@click.option("--keep", is_flag=True, help="Leave them on the system too, though all are fetched.")
@click.argument("session")
@click.argument("path", nargs=-1)
def result(
    out: Output,
    only_list: bool,
    to: str | None,
    archive: str | None,
    as_table: bool,
    keep: bool,
    session: str,
    path: tuple[str, ...],
) -> None:
    """List the files that a session left, with their sizes; or print one, or fetch some or all.

    PATH is a file, a directory, or a pattern such as 'plots/*.png', and can be repeated. A fetch that was broken off
    goes on where it was. When all were fetched with --out, a cluster where the session was a guest is cleaned of it;
    what it printed can still be read. With --keep they stay for their keep time.

    With --table there is a row for each task of a sweep or bag that was run: its parameters, exit_code, seconds, and
    the fields of a JSON object on the last line that it printed, else that line, as output.
    """
    link = out.link()
    if as_table:
        from sublet.booking.cli.result_table import print_table  # only needed here

        print_table(out, link, session)
    elif archive:
        with open(archive, "wb") as file:
            file.writelines(link.stream(results.archive(session)))
        out.show({"archive": archive}, lambda: [archive], lambda: [archive])
    elif only_list or not (path or to):
        _list(out, link, session, path)
    elif to is not None:
        made = fetch_all(out, link, session, to, keep, path)
        out.show({"files": made}, lambda: made, lambda: made)
    else:
        for name in path if len(path) == 1 else [one.path for one in _choose_results(link, session, path).items]:
            for piece in link.stream(results.result(session, name)):
                sys.stdout.buffer.write(piece)


def _choose_results(link: Link, session: str, wanted: Sequence[str]) -> ResultList:
    return choose_results(link.do(results.results(session)), wanted)


def _list(out: Output, link: Link, session: str, wanted: Sequence[str]) -> None:
    view, now = _choose_results(link, session, wanted), datetime.now(UTC)
    rows = [(file.path, size(file.size), when(file.modified, now)) for file in view.items]
    rows += [(f"{folder}/", "empty", "") for folder in view.folders]
    out.show(
        view,
        lambda: table(("FILE", "SIZE", "MODIFIED"), rows) if rows else [],
        lambda: (file.path for file in view.items),
    )
    if out.for_people:
        told = f"{count_text(len(view.items), 'file')}, {size(view.size)}{count_empty(view)}"
        all_of_it = f"{told}. Fetch with: sublet result {session} --out DIR"
        out.note(all_of_it if rows else "It left no files.")
