"""`pledge`: the parts of platforms, how much of them is free, and who may use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from sublet.access.calls import pledges
from sublet.access.cli.limits import describe_limits
from sublet.access.views.access import RuleView
from sublet.access.views.pledges import AddedPledgeView, PledgeAsk, PledgeEdit, PledgeView
from sublet.booking.model.amounts import memory_text
from sublet.booking.model.pledge import OPEN
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.kernel.texts import count_text

HEAD = ("PLATFORM", "NAME", "CORES", "TAKEN", "FREE", "MAY", "TITLE")


@click.group("pledge", cls=CommandGroup, epilog=Example("sublet pledge list"))
def pledge() -> None:
    """Show the parts of platforms that are pledged, and what is open; operators add and change them.

    `sublet ask --pledge NAME` asks for one of them; `sublet rule add … --pledge NAME` says who may draw on it.
    """


def amounts(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for what is pledged, and when."""
    options = (
        click.option("--cores", type=click.IntRange(0), metavar="N", help="How many cores, on whichever nodes."),
        click.option("--memory", metavar="SIZE", help="How much memory, as in 512GiB."),
        click.option("--gpus", type=click.IntRange(0), metavar="N", help="How many GPUs."),
        click.option("--storage", metavar="SIZE", help="How much storage, of all pools together."),
        click.option("--when", metavar="HOURS", help="In force only then: 'nights, weekends', 'Mon-Fri 18:00-08:00'."),
        click.option("--zone", metavar="ZONE", help="The time zone of --when, as in Europe/London; else UTC."),
        click.option("--title", metavar="TEXT", help="A description."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command(
    "add",
    "sublet pledge add srcnet --platform site --cores 500",
    "sublet pledge add ml --platform site --gpus 6 --when 'nights, weekends' --zone Europe/London",
)
@click.argument("name")
@click.option("--platform", required=True, metavar="NAME", help="Of which platform.")
@amounts
def add(out: Output, name: str, platform: str, **given: Any) -> None:
    """Pledge a part of a platform, in addition to its settings; for operators. It takes effect at once.

    An access rule must allow people to use it: sublet rule add allow WHO --pledge NAME
    """
    _show_change(out, out.link().do(pledges.add(PledgeAsk(platform=platform, name=name, **given))), "is added")


@command(
    "edit",
    "sublet pledge edit srcnet --cores 600",
    "sublet pledge edit ml --gpus 0 --cores 64 --when ''",
    may_be_empty=("memory", "storage", "when", "zone"),
)
@click.argument("name")
@click.option("--platform", default="", metavar="NAME", help="Which, where several platforms have one of this name.")
@amounts
def edit(out: Output, name: str, platform: str, **given: Any) -> None:
    """Change a pledge that was added with `pledge add`. Existing bookings stay.

    An amount of 0, or an empty text, removes that part. Pledges from the settings are changed there.
    """
    if all(value is None for value in given.values()):
        raise click.UsageError("Name something to change, such as --cores.")
    _show_change(out, out.link().do(pledges.edit(name, PledgeEdit(**given), platform)), "is changed")


@command("remove", "sublet pledge remove srcnet")
@click.argument("name")
@click.option("--platform", default="", metavar="NAME", help="Which, where several platforms have one of this name.")
def remove(out: Output, name: str, platform: str) -> None:
    """Remove a pledge that was added with `pledge add`; its part becomes open. Existing bookings stay."""
    _show_change(out, out.link().do(pledges.remove(name, platform)), "is removed")


def _show_change(out: Output, view: AddedPledgeView, done: str) -> None:
    counts = {"cores": view.cores, "GPUs": view.gpus}
    sizes = {"memory": view.memory, "storage": view.storage}
    parts = [f"{count} {noun}" for noun, count in counts.items() if count]
    parts += [f"{size} of {noun}" for noun, size in sizes.items() if size]
    hours = f", {view.when} ({view.zone or 'UTC'})" if view.when else ""
    line = f"Pledge {view.name} of {view.platform} {done}: {', '.join(parts)}{hours}."
    out.show(view, lambda: [line], lambda: [view.name])


@command("list", "sublet pledge list")
def list_(out: Output) -> None:
    """List the parts of the platforms that you may use: their size, what is free now, and whether you may."""
    view = out.link().do(pledges.pledges())
    out.show(view, lambda: _table(view.items), lambda: (pledge.name for pledge in view.items if pledge.allowed))
    if not view.items and out.for_people:
        out.note("No platform has pledges; an operator makes them: sublet pledge add")


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
    """Show a pledge on each platform that has it, and to operators who may use it."""
    view = out.link().do(pledges.pledge(name))
    out.show(view, lambda: (line for pledge in view.items for line in describe_pledge(pledge)), lambda: [name])


def describe_pledge(view: PledgeView) -> list[str]:
    """Describe a part of a platform in full."""
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
            ("made by", "" if view.name == OPEN else "an operator" if view.added else "the settings"),
            ("you may", f"{'yes' if view.allowed else 'no'}: {view.why}"),
            ("limits", describe_limits(view.limits) if view.allowed else ""),
            ("to be let in", view.how),
            *(("rule", _rule(rule)) for rule in view.rules),
        ]
    )


def _rule(view: RuleView) -> str:
    limits = describe_limits(view.limits)
    return f"{view.id[:8]} {view.effect} {view.who}{f': {limits}' if limits else ''}"


for each in (add, edit, list_, remove, show):
    pledge.add_command(each)
