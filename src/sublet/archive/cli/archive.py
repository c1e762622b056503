"""`archive`: the records that outlive sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from sublet.archive.calls import archive as calls
from sublet.archive.views.archive import SessionRecordView
from sublet.cli.command import CommandGroup, Example, command, with_options
from sublet.cli.instants import read_past
from sublet.cli.output import Output, table
from sublet.kernel.errors import BadRequest
from sublet.kernel.texts import describe_duration

MOST = 1000  # records per page
OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--person", metavar="NAME", help="Only of this person; operators may name others."),
    click.option("--platform", metavar="NAME", help="Only of this platform."),
    click.option("--since", metavar="WHEN", help="Asked for on a day or later, or so long ago: 30d."),
    click.option("--until", metavar="WHEN", help="Asked for before a day or an instant."),
)


@click.group("archive", cls=CommandGroup, epilog=Example("sublet archive list --since 30d"))
def archive() -> None:
    """List, export, query (SQL) and erase the records that outlive sessions."""


def add_filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that filter records to a command."""
    return with_options(function, OPTIONS)


def _read_filters(person: str | None, platform: str | None, since: str | None, until: str | None) -> dict[str, object]:
    return {"person": person, "platform": platform, "since": read_past(since), "until": read_past(until)}


@command("list", "sublet archive list --since 30d", "sublet archive list --platform keeling --json")
@add_filters
def list_records(out: Output, **options: str | None) -> None:
    """List the records of ended sessions, deleted ones included, oldest first.

    You see your own; an operator sees everybody's.
    """
    link, after, records = out.link(), "", list[SessionRecordView]()
    while True:
        page = link.do(calls.list_records(after, MOST, **_read_filters(**options)))
        records += page.items
        if page.next is None:
            break
        after = page.next
    head = ("SESSION", "ASKED", "NAME", "PLATFORM", "CORES", "WAITED", "RAN", "OUTCOME", "PERSON")
    out.show(
        records,
        lambda: table(head, [_row(record) for record in records], least=("PERSON",)) if records else [],
        lambda: (record.session for record in records),
    )
    if out.for_people and not records:
        out.note("The archive has nothing of that yet: a record is written when a session ends.")


def _row(record: SessionRecordView) -> tuple[str, ...]:
    return (
        record.session[:8],
        f"{record.asked.astimezone():%Y-%m-%d %H:%M}",
        record.app or record.name,
        record.platform,
        str(record.cores * record.nodes),
        _length(record.wait),
        _length(record.wall),
        record.outcome,
        record.person,
    )


def _length(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return describe_duration(timedelta(seconds=round(seconds)), units=2) if seconds >= 1 else "0 s"


@command("export", "sublet archive export sessions.csv --since 365d", "sublet archive export sessions.parquet")
@click.argument("file", metavar="FILE")
@add_filters
def export(out: Output, file: str, **options: str | None) -> None:
    """Write records to a file, as CSV, lines of JSON (.jsonl) or Parquet: the name's end says which.

    - is standard output, as CSV. Parquet needs DuckDB: pip install 'sublet[archive]'
    """
    to = Path(file)
    form = "csv" if file == "-" else to.suffix.lstrip(".").lower()
    if form not in ("csv", "jsonl", "parquet"):
        raise BadRequest(
            detail=f"{file} ends neither in .csv, .jsonl nor .parquet", hint="sublet archive export sessions.csv"
        )
    pieces = out.link().stream(calls.export("csv" if form == "csv" else "jsonl", **_read_filters(**options)))
    if file == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    elif form == "parquet":
        from sublet.archive.cli.querying import write_parquet  # opens databases

        write_parquet(split_lines(pieces), to)
    else:
        _write(pieces, to)


def _write(pieces: Iterator[bytes], to: Path) -> None:
    part = to.with_name(f".{to.name}.part")
    try:
        with part.open("wb") as file:
            file.writelines(pieces)
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)


def split_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines from pieces of any size."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest + b"\n"


@command(
    "query",
    "sublet archive query 'SELECT platform, avg(wait) FROM sessions GROUP BY platform'",
    "sublet archive query 'SELECT app, max(peak_memory) FROM sessions GROUP BY app' --since 90d",
)
@click.argument("sql")
@add_filters
def query(out: Output, sql: str, **options: str | None) -> None:
    """Query the archive in SQL: one SELECT on the table `sessions`.

    The query runs here, on a copy of the records that you may see. It uses DuckDB if that is installed (pip install
    'sublet[archive]'), otherwise SQLite. `sublet archive list --json` shows the columns.
    """
    from sublet.archive.cli.querying import run_query  # opens databases

    pieces = out.link().stream(calls.export("jsonl", **_read_filters(**options)))
    answer = run_query(sql, split_lines(pieces))
    rows = [tuple("" if cell is None else str(cell) for cell in row) for row in answer.rows]
    facts = [dict(zip(answer.columns, (_plain(cell) for cell in row), strict=True)) for row in answer.rows]
    head = tuple(column.upper() for column in answer.columns)
    out.show(facts, lambda: table(head, rows) if rows else [], lambda: ("\t".join(row) for row in rows))
    out.detail(f"asked by {answer.engine}")


def _plain(cell: object) -> object:
    return cell if cell is None or isinstance(cell, str | int | float | bool) else str(cell)


@command("calibration", "sublet archive calibration --since 30d")
@click.option("--since", metavar="WHEN", help="Asked for on a day or later, or so long ago: 30d. Without it, 90 days.")
def calibration(out: Output, since: str | None) -> None:
    """Show how often predictions came true, by platform and queue.

    Start times and run times are predicted as a range that should be right in 80 of 100 cases (INSIDE), and staging
    as a duration that should be enough in 90 of 100 (IN TIME). docs/estimates.md explains the method.
    """
    view = out.link().do(calls.calibration(read_past(since)))
    rows = [
        (
            row.platform,
            row.queue,
            str(row.starts),
            _share(row.inside, row.starts),
            _share(row.earlier, row.starts),
            _share(row.later, row.starts),
            str(row.stagings),
            _share(row.staged_in_time, row.stagings),
            str(row.runs),
            _share(row.runs_inside, row.runs),
            _share(row.runs_longer, row.runs),
        )
        for row in view.items
    ]
    starts = ("STARTS", "INSIDE", "EARLIER", "LATER")
    head = ("PLATFORM", "QUEUE", *starts, "STAGED", "IN TIME", "RUNS", "INSIDE", "LONGER")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: ("\t".join(row) for row in rows))
    if out.for_people and not rows:
        out.note("Nothing was predicted in that time: starts are, in shared queues, and the length of known programs.")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}".replace("%", " %") if whole else ""


@command("request", "sublet archive request 6f1c2b7e-9c1a-4c55-8f7e-0d3c7a4f1c2b > request.json")
@click.argument("session", metavar="SESSION")
def request(out: Output, session: str) -> None:
    """Print the request of an archived session of your own, as it was sent."""
    sys.stdout.buffer.write(out.link().do(calls.request_of(session)))
    sys.stdout.buffer.flush()


@command("forget", "sublet archive forget", "sublet archive forget --person ada@example.org --records")
@click.option("--person", metavar="NAME", help="Whom; operators may name others. Without it: yourself.")
@click.option("--records", is_flag=True, help="Remove the records, too. Without it they stay, and name nobody.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def forget(out: Output, person: str | None, records: bool, yes: bool) -> None:
    """Remove the person's name, and the names and requests that they typed, from the records. This can't be undone.

    Usage of accounts (`sublet usage`), the audit log and existing sessions are not changed.
    """
    whose = f"of {person}" if person else "of you"
    if not yes:
        click.confirm(f"Erase what the archive knows {whose}?", abort=True, err=True)
    erased = out.link().do(calls.forget(person or "", records))
    gone = "removed" if records else "name nobody now"
    out.show(erased, list, list)
    if out.for_people:
        out.note(f"{erased.records} records {gone}; {erased.details} requests are erased.")


for each in (list_records, export, query, calibration, request, forget):
    archive.add_command(each)
