"""`usage`: what people used, by quarter."""

from __future__ import annotations

import click

from sublet.access.calls.usage import usage as report
from sublet.access.calls.usage import usage_csv
from sublet.access.views.usage import QuarterView, UsedView
from sublet.cli.command import command
from sublet.cli.output import Output, table


@command("usage", "sublet usage --quarter 2026Q4", "sublet usage --account keeling --csv > keeling.csv")
@click.option("--account", "platform", metavar="NAME", help="Only of this account, or of another platform.")
@click.option("--person", metavar="NAME", help="Only of this person; operators may name others.")
@click.option("--quarter", metavar="YEARQn", help="As 2026Q4; without any, this one.")
@click.option("--since", metavar="DAY", help="Instead of a quarter: from this day on, as 2026-10-01.")
@click.option("--until", metavar="DAY", help="Until before this day.")
@click.option("--csv", is_flag=True, help="Print a table for spreadsheets.")
def usage(
    out: Output,
    platform: str | None,
    person: str | None,
    quarter: str | None,
    since: str | None,
    until: str | None,
    csv: bool,
) -> None:
    """Show sessions, core-hours and node-hours of each person, and how many people used each account.

    From Sublet's own records of running and ended sessions. You see your own; an operator sees everyone's.
    """
    given = {"platform": platform, "person": person, "quarter": quarter, "since": _day(since), "until": _day(until)}
    asked = {name: value for name, value in given.items() if value}
    if csv:
        click.echo(out.link().do(usage_csv(**asked)).decode(), nl=False)
        return
    view = out.link().do(report(**asked))
    rows = [(row.quarter, row.platform, row.person, *_numbers(row)) for row in view.items]
    rows += [
        (row.quarter, row.platform, f"{row.people} in all", *_numbers(row)) for row in view.totals if row.people > 1
    ]
    head = ("QUARTER", "ACCOUNT", "PERSON", "SESSIONS", "CORE-HOURS", "NODE-HOURS")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (row.person for row in view.items))
    if out.for_people and not rows:
        out.note(f"Nothing ran between {view.since:%Y-%m-%d} and {view.until:%Y-%m-%d}.")


def _numbers(row: UsedView | QuarterView) -> tuple[str, str, str]:
    return str(row.sessions), f"{row.core_hours:.2f}", f"{row.node_hours:.2f}"


def _day(text: str | None) -> str:
    """Turn a day into an instant; leave a time as it is."""
    return f"{text}T00:00:00Z" if text and len(text) == 10 else text or ""
