"""Pledges: the parts of platforms, how much of them is free, and who may draw on them."""

from __future__ import annotations

import click

from sublet.access.calls import pledges
from sublet.access.cli.limits import describe_limits
from sublet.access.views.access import RuleView
from sublet.access.views.pledges import PledgeView
from sublet.booking.model.amounts import memory_text
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.kernel.texts import count_text

HEAD = ("PLATFORM", "NAME", "CORES", "TAKEN", "FREE", "MAY", "TITLE")


@click.group("pledge", cls=CommandGroup, epilog=Example("sublet pledge list"))
def pledge() -> None:
    """Show the parts of platforms that are pledged, and what is open.

    `sublet ask --pledge NAME` asks for one of them; `sublet rule add … --pledge NAME` says who may draw on it.
    """


@command("list", "sublet pledge list")
def list_(out: Output) -> None:
    """List the parts of the platforms that you may use: their size, what is free now, and whether you may."""
    view = out.link().do(pledges.pledges())
    out.show(view, lambda: _table(view.items), lambda: (pledge.name for pledge in view.items if pledge.allowed))
    if not view.items and out.for_people:
        out.note("No platform has pledges; an operator makes them in its settings.")


def _table(views: tuple[PledgeView, ...]) -> list[str]:
    rows = [
        (
            view.platform,
            view.name,
            str(view.cores),
            str(view.taken),
            str(view.free),
            "yes" if view.allowed else "no",
            view.title,
        )
        for view in views
    ]
    return table(HEAD, rows) if rows else []


@command("show", "sublet pledge show srcnet")
@click.argument("name")
def show(out: Output, name: str) -> None:
    """Show a pledge on each platform that has it; to operators, who may draw on it too."""
    view = out.link().do(pledges.pledge(name))
    out.show(view, lambda: (line for pledge in view.items for line in describe_pledge(pledge)), lambda: [name])


def describe_pledge(view: PledgeView) -> list[str]:
    """A part of a platform in full."""
    return pairs(
        [
            ("pledge", view.name),
            ("platform", view.platform),
            ("title", view.title),
            ("size", count_text(view.cores, "core")),
            ("taken now", count_text(view.taken, "core")),
            ("free now", count_text(view.free, "core")),
            ("memory", "" if view.memory is None else memory_text(view.memory)),
            ("GPUs", "" if view.gpus is None else str(view.gpus)),
            ("storage", "" if view.storage is None else memory_text(view.storage)),
            ("in force", view.when),
            ("you may", f"{'yes' if view.allowed else 'no'}: {view.why}"),
            ("limits", describe_limits(view.limits) if view.allowed else ""),
            ("to be let in", view.how),
            *(("rule", _rule(rule)) for rule in view.rules),
        ]
    )


def _rule(view: RuleView) -> str:
    limits = describe_limits(view.limits)
    return f"{view.id[:8]} {view.effect} {view.who}{f': {limits}' if limits else ''}"


for one in (list_, show):
    pledge.add_command(one)
