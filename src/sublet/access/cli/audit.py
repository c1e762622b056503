"""`audit`: who did what on a gateway."""

from __future__ import annotations

import json
import sys

import click

from sublet.access.calls import audit as calls
from sublet.access.views.audit import AuditView
from sublet.cli.command import command
from sublet.cli.instants import read_past
from sublet.cli.output import Output, table

MOST = 1000  # entries per page


@command("audit", "sublet audit --action rule. --since 2026-11-01", "sublet audit --csv > audit.csv")
@click.option("--person", metavar="NAME", help="Who did it.")
@click.option("--action", metavar="WORD", help="An action, or the beginning of one: rule., sign-in.refused.")
@click.option("--noun", metavar="NOUN", help="What kind of thing it was done to: rule, account, app.")
@click.option("--name", metavar="NAME", help="Which thing.")
@click.option("--since", metavar="WHEN", help="From a day or an instant on, or so long ago: 7d.")
@click.option("--until", metavar="WHEN", help="Before a day or an instant.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all of it as CSV; --json prints a line of JSON for each.")
def audit(
    out: Output,
    person: str | None,
    action: str | None,
    noun: str | None,
    name: str | None,
    since: str | None,
    until: str | None,
    as_csv: bool,
) -> None:
    """Show the audit log, oldest first. Operators see all of it, others their own actions."""
    sought = {"person": person, "action": action, "noun": noun, "name": name}
    times = {"since": read_past(since), "until": read_past(until)}
    if out.json or as_csv:
        for piece in out.link().stream(calls.export("csv" if as_csv else "jsonl", **sought, **times)):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    link, after, entries = out.link(), 0, list[AuditView]()
    while True:
        page = link.do(calls.audit(after, MOST, **sought, **times))
        entries += page.items
        if page.next is None:
            break
        after = page.next
    rows = [_row(entry) for entry in entries]
    out.show(
        entries,
        lambda: (
            table(("TIME", "PERSON", "ACTION", "WHAT", "FROM", "DETAIL"), rows, keep=("ACTION",), least=("FROM",))
            if rows
            else ["No entries match."]
        ),
        lambda: (str(entry.id) for entry in entries),
    )


def _row(view: AuditView) -> tuple[str, ...]:
    detail = ", ".join(f"{key}: {_short(value)}" for key, value in view.detail.items() if value != "")
    what = f"{view.noun} {view.name}".strip()
    return f"{view.time.astimezone():%Y-%m-%d %H:%M:%S %Z}", view.person, view.action, what, view.host, detail


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if text.isprintable() else json.dumps(text)
