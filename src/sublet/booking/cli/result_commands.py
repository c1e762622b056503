"""`result ls`, `get`, `put`, `preview` and `keep`: the files that a session left."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from sublet.booking.calls import results
from sublet.booking.cli.fetching import Destination, check_folder, count_empty, fetch_all
from sublet.booking.cli.result_previews import PREVIEWED, FilePreview, describe_file, make_plain
from sublet.booking.model.amounts import parse_duration
from sublet.booking.views.results import SentFileView
from sublet.cli.command import command
from sublet.cli.output import Output, table
from sublet.cli.progress import Progress
from sublet.cli.texts import size, when
from sublet.client.fetching import choose_results
from sublet.client.link import Link
from sublet.client.sent_lines import SentLines
from sublet.kernel.texts import count_text


@command("ls", "sublet result ls 3f2a", "sublet result ls 3f2a 'plots/*.png'")
@click.argument("session")
@click.argument("path", nargs=-1)
def ls(out: Output, session: str, path: tuple[str, ...]) -> None:
    """List the files with their sizes, and until when they are kept. PATH is a file, a folder, or a pattern."""
    show_list(out, out.link(), session, path)


def show_list(out: Output, link: Link, session: str, wanted: Sequence[str], fetched_by: str = "") -> None:
    """List the files that PATH selects, with sizes, and say how to fetch them."""
    view, now = choose_results(link.do(results.results(session)), wanted), datetime.now(UTC)
    rows = [(file.path, size(file.size), when(file.modified, now)) for file in view.items]
    rows += [(f"{folder}/", "empty", "") for folder in view.folders]
    out.show(
        view,
        lambda: table(("FILE", "SIZE", "MODIFIED"), rows) if rows else [],
        lambda: (file.path for file in view.items),
    )
    if out.for_people:
        told = f"{count_text(len(view.items), 'file')}, {size(view.size)}{count_empty(view)}"
        told += f", kept until {when(view.kept_until, now)}" if view.kept_until else ""
        words = shlex.join(["sublet", "result", *(["get"] if wanted else []), session, *wanted, "--out", "DIR"])
        all_of_it = f"{told}. {fetched_by or f'Fetch with: {words}'}"
        out.note(all_of_it if rows else "It left no files.")


@command("get", "sublet result get 3f2a", "sublet result get 3f2a 'out/*.nc' --out results --dry-run")
@click.argument("session")
@click.argument("path", nargs=-1)
@click.option(
    "--out", "to", metavar="DIR", default=".", callback=check_folder, help="Into this directory, not this one."
)
@click.option("--dry-run", is_flag=True, help="Say what would be fetched, and how much it is; fetch nothing.")
@click.option("--overwrite", is_flag=True, help="Replace other files of the same names that are there.")
@click.option("--keep", is_flag=True, help="Leave them on the system too, though all are fetched.")
def get(out: Output, session: str, path: tuple[str, ...], to: str, dry_run: bool, overwrite: bool, keep: bool) -> None:
    """Fetch all files, or those that match PATH. An interrupted download resumes.

    Files that you already have are not fetched again. If a different file of the same name exists, nothing is
    fetched, unless you use --overwrite. Each file gets the time at which the session wrote it.
    """
    link = out.link()
    if dry_run:
        show_list(out, link, session, path, f"This would be fetched into {'this directory' if to == '.' else to}.")
        return
    made = fetch_all(out, link, session, Destination(to, keep, overwrite), path)
    out.show({"files": made}, lambda: made, lambda: made)


@command(
    "put",
    "sublet result put 3f2a s3://bucket/run1/",
    "sublet result put 3f2a davs://data.example.org/sums/ 'out/*' log.txt",
)
@click.argument("session")
@click.argument("address")
@click.argument("path", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Say what would be sent, and how much it is; send nothing.")
def put(out: Output, session: str, address: str, path: tuple[str, ...], dry_run: bool) -> None:
    """Send files to your own storage, straight from where they are. Credentials are added with sublet credential.

    PATH is a file, a folder, or a pattern, and can be repeated; the default is all files. If you repeat the command,
    only missing or changed files are sent.
    """
    link = out.link()
    if dry_run:
        show_list(out, link, session, path, f"This would be sent to {address}.")
        return
    sent = [file for wanted in path or ("*",) for file in _send(out, link, session, address, wanted)]
    new = [file for file in sent if not file.was_there]
    words = f"Sent {count_text(len(new), 'file')} ({size(sum(file.size for file in new))}) to {address}"
    words += f"; {count_text(len(sent) - len(new), 'file')} there already." if len(new) < len(sent) else "."
    out.show({"sent": sent}, lambda: [words], lambda: (file.to for file in sent))


def _send(out: Output, link: Link, session: str, address: str, path: str) -> Sequence[SentFileView]:
    """Send the files that a path selects, and show progress."""
    line, lines, count = Progress(wanted=out.for_people), SentLines(), 0
    try:
        for piece in link.stream(results.send(session, address, path, progress=out.for_people)):
            if doing := lines.saw(piece).doing:
                of = f" of {size(doing.total)}" if doing.total else ""
                line.show(f"{doing.doing}: {size(doing.done)}{of}" if doing.done else doing.doing)
            for file in lines.files[count:]:
                line.clear()
                out.detail(describe_sent(file))
            count = len(lines.files)
    finally:
        line.clear()
    return lines.files


def describe_sent(file: SentFileView) -> str:
    """Say whether a file was sent, or was there already."""
    if file.was_there:
        return f"{file.path} is there already"
    return f"sent {file.path} ({size(file.size)}{', ' if file.road else ''}{file.road})"


@command("preview", "sublet result preview 3f2a out/table.csv")
@click.argument("session")
@click.argument("path", nargs=-1, required=True)
@click.option(
    "--lines", metavar="N", type=click.IntRange(1, 1000), default=10, help="So many lines or rows of each: 10."
)
def preview(out: Output, session: str, path: tuple[str, ...], lines: int) -> None:
    """Show the beginning of texts and tables, and facts about images, without fetching the whole file."""
    link = out.link()
    chosen = choose_results(link.do(results.results(session)), path)
    shown = [
        (file, b"".join(link.stream(results.part(session, file.path, PREVIEWED))) if file.size else b"")
        for file in chosen.items
    ]
    views = [describe_file(file.path, file.size, data[:PREVIEWED], lines) for file, data in shown]
    views += [FilePreview(f"{path}/", 0, "an empty folder") for path in chosen.folders]
    facts = [{"path": view.path, "size": view.size, "facts": view.facts, "lines": view.lines} for view in views]
    human = [line for view in views for line in (f"{make_plain(view.path)}: {view.facts}", *view.lines, "")]
    out.show({"items": facts}, lambda: human[:-1], lambda: (line for view in views for line in view.lines))


@command("keep", "sublet result keep 3f2a 7d")
@click.argument("session")
@click.argument("duration", metavar="TIME")
def keep(out: Output, session: str, duration: str) -> None:
    """Keep the files of an ended session for this long from now on: 12h, 7d, 4w."""
    view = out.link().do(results.keep(session, parse_duration(duration, timedelta(days=36500))))
    until = when(view.kept_until, datetime.now(UTC))
    out.show(view, lambda: [f"Its files are kept until {until}."], lambda: [view.kept_until.isoformat()])
