"""`result`: the files that a session left."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from sublet.booking.calls import results
from sublet.booking.cli.fetching import Destination, check_file, check_folder, fetch_all
from sublet.booking.cli.result_commands import get, keep, ls, preview, put, show_list
from sublet.booking.views.results import ResultList
from sublet.cli.command import DefaultGroup, Example, command
from sublet.cli.output import Output
from sublet.client.fetching import choose_results, save
from sublet.client.link import Link
from sublet.kernel.errors import InTheWay


@click.group(
    "result",
    cls=DefaultGroup,
    default="files",
    epilog=Example("sublet result ls 3f2a", "sublet result get 3f2a 'plots/*.png' --out results", "sublet result 3f2a"),
)
def result() -> None:
    """List, fetch, send and preview the files that a session left, or keep them longer.

    `sublet result SESSION` is `sublet result files SESSION`: it lists, prints or fetches by its options.
    """


@command(
    "files",
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
@click.option("--overwrite", is_flag=True, help="With --out and --archive: replace other files that are there.")
@click.option("--keep", is_flag=True, help="Leave them on the system too, though all are fetched.")
@click.argument("session")
@click.argument("path", nargs=-1)
def files(
    out: Output,
    only_list: bool,
    to: str | None,
    archive: str | None,
    as_table: bool,
    overwrite: bool,
    keep: bool,
    session: str,
    path: tuple[str, ...],
) -> None:
    """List the files that a session left, with their sizes; or print one, or fetch some or all.

    PATH is a file, a directory, or a pattern such as 'plots/*.png', and can be repeated. An interrupted download
    resumes, and files that you already have are not fetched again. If a different file of the same name exists,
    nothing is fetched, unless you use --overwrite.

    Once everything is fetched with --out, the session's files are removed from the cluster; its output can still be
    read. With --keep they stay for their keep time.

    --table prints a row for each task of a sweep or bag that has run: its parameters, exit_code, seconds, and the
    fields of a JSON object on the last line that it printed, or that line as output.
    """
    link = out.link()
    if as_table:
        from sublet.booking.cli.result_table import print_table  # only needed here

        print_table(out, link, session)
    elif archive:
        if os.path.lexists(archive) and not overwrite:
            raise InTheWay(
                f"Nothing was fetched, because {archive} is there already.", hint="Name another, or say --overwrite."
            )
        save(link.stream(results.archive(session)), archive)
        out.show({"archive": archive}, lambda: [archive], lambda: [archive])
    elif only_list or not (path or to):
        show_list(out, link, session, path)
    elif to is not None:
        made = fetch_all(out, link, session, Destination(to, keep, overwrite), path)
        out.show({"files": made}, lambda: made, lambda: made)
    else:
        for name in path if len(path) == 1 else [one.path for one in _choose_results(link, session, path).items]:
            for piece in link.stream(results.result(session, name)):
                sys.stdout.buffer.write(piece)


def _choose_results(link: Link, session: str, wanted: Sequence[str]) -> ResultList:
    return choose_results(link.do(results.results(session)), wanted)


for word in (files, ls, get, put, preview, keep):
    result.add_command(word)
