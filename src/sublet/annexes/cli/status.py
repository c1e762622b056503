"""Commands that show annexes, their history, and the logs of their pilots."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

import click

from sublet.annexes.calls import annexes
from sublet.annexes.cli.texts import describe_annex, describe_leases, overview
from sublet.annexes.views.annexes import LeaseView
from sublet.cli.command import command
from sublet.cli.output import Output, table
from sublet.cli.texts import moment
from sublet.client.following import Following
from sublet.client.link import Link
from sublet.client.waiting import follow, so_far
from sublet.kernel.errors import NoLease

REDRAW = 2.0  # seconds
CLEAR = "\033[H\033[J"


@command("status", "sublet annex status", "sublet annex status example --watch")
@click.argument("name", required=False, metavar="[NAME[#N]]")
@click.option("--watch", "-w", is_flag=True, help="Draw it again and again, until Ctrl-C.")
def status(out: Output, name: str | None, watch: bool) -> None:
    """Show annexes, leases and nodes: their state and the reason, time left, jobs and cost."""
    link = out.link()
    while True:
        if watch and sys.stdout.isatty() and not out.json:
            click.echo(CLEAR, nl=False)
        _draw(out, link, name)
        if not watch:
            return
        time.sleep(REDRAW)


def _draw(out: Output, link: Link, name: str | None) -> None:
    now = datetime.now(UTC)
    if name:
        view = link.do(annexes.annex(name))
        out.show(
            view, lambda: describe_annex(view, now), lambda: (f"{lease.name} {lease.state}" for lease in view.leases)
        )
        return
    listed = link.do(annexes.annexes())
    out.show(listed, lambda: overview(listed.items, now), lambda: (annex.name for annex in listed.items))
    if not listed.items and out.for_people:
        out.note("You have no annexes. Make one with: sublet annex create NAME")


@command("history", "sublet annex history example", "sublet annex history example@2026-11-14")
@click.argument("name", metavar="NAME[#N|@DAY]")
@click.option("--events", is_flag=True, help="Also what happened, step by step.")
def history(out: Output, name: str, events: bool) -> None:
    """List all leases that an annex ever had, and how they ended."""
    view, now = out.link().do(annexes.history(name)), datetime.now(UTC)

    def lines() -> list[str]:
        rows = [(moment(event.time, now), event.kind, event.phase, event.detail) for event in view.events]
        event_lines = ["", *table(("WHEN", "WHAT", "PHASE", "DETAIL"), rows, keep=("WHEN",))] if events and rows else []
        return [*describe_leases(view.annex.leases, now), *event_lines]

    out.show(view, lines, lambda: (lease.name for lease in view.annex.leases))


@command("logs", "sublet annex logs example", "sublet annex logs example#2 --htcondor")
@click.argument("name", metavar="NAME[#N]")
@click.option("--follow", "-f", "go_on", is_flag=True, help="Follow until the lease ends.")
@click.option("--htcondor", is_flag=True, help="What HTCondor logged there, once its node has ended.")
def logs(out: Output, name: str, go_on: bool, htcondor: bool) -> None:
    """Show the logs of a lease's pilots; of several leases, the last one's.

    HTCondor's own logs are fetched when a node ends; each line has the number of its node.
    """
    link = out.link()
    lease = _last(link, name)
    following = Following(lease.session, "stdout" if htcondor else "stderr")
    pieces = follow(link, following) if go_on else so_far(link, following)
    if out.json:
        text = b"".join(pieces).decode("utf-8", "replace")
        out.data({"lease": lease.name, "session": lease.session, "text": text})
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _last(link: Link, name: str) -> LeaseView:
    """Return the newest of the leases that a name means, among those that were submitted."""
    sent = [lease for lease in link.do(annexes.history(name)).annex.leases if lease.session]
    if not sent:
        raise NoLease(name=name, wanted="was sent")
    return sent[-1]
