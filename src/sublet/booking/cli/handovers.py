"""`handover`: give a session that has not begun to a colleague, or take one."""

from __future__ import annotations

import click

from sublet.booking.calls import handovers as calls
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table


@click.group("handover", cls=CommandGroup, epilog=Example("sublet handover list"))
def handover() -> None:
    """Give a session that has not begun to a colleague on the same gateway, or take one."""


@command("give", "sublet handover give 3f2a9c1d ada@example.org")
@click.argument("session")
@click.argument("person", metavar="PERSON")
def give(out: Output, session: str, person: str) -> None:
    """Offer a session of yours to someone; nothing changes until they take it."""
    view = out.link().do(calls.give(session, person))
    out.show(view, lambda: [f"{view.session[:8]} is offered to {view.taker}."], lambda: [view.session[:8]])


@command("list", "sublet handover list")
def list_handovers(out: Output) -> None:
    """List the sessions that you offer, and those that are offered to you."""
    view = out.link().do(calls.handovers())
    rows = [(each.session[:8], each.giver, each.taker) for each in view.items]
    head = ("SESSION", "FROM", "TO")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (each.session[:8] for each in view.items))
    if out.for_people and not rows:
        out.note("Nothing is offered to you, or by you.")


@command("take", "sublet handover take 3f2a9c1d")
@click.argument("session")
def take(out: Output, session: str) -> None:
    """Take over a session that is offered to you, if you may use what it needs. It then counts as yours."""
    view = out.link().do(calls.take(session))
    out.show(view, lambda: [f"{view.short} is yours: sublet status {view.short}"], lambda: [view.short])


@command("drop", "sublet handover drop 3f2a9c1d")
@click.argument("session")
def drop(out: Output, session: str) -> None:
    """Withdraw an offer of yours, or decline one to you."""
    out.link().do(calls.drop(session))
    out.note("It stays as it was.")


for each_command in (give, list_handovers, take, drop):
    handover.add_command(each_command)
