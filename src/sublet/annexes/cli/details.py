"""The command line options that describe a lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from sublet.annexes.views.annexes import OWN_LINES, DetailsView
from sublet.booking.model.amounts import parse_count, parse_duration, parse_memory
from sublet.cli.command import with_options
from sublet.cli.scheduler import read_scheduler_flags, scheduler_flags

F = TypeVar("F", bound=Callable[..., Any])
PARSERS: dict[str, Callable[[str], Any]] = {
    "nodes": parse_count,
    "cores": parse_count,
    "memory": parse_memory,
    "gpus": lambda text: parse_count(text, "a count", 0),
    "slots": parse_count,
    "lifetime": parse_duration,
    "idle": parse_duration,
}
OPTIONS = (
    click.option("--system", metavar="NAME", help="The cluster: one of `sublet system list`."),
    click.option("--queue", metavar="NAME", help="The partition, QOS or queue."),
    click.option("--project", metavar="NAME", help="The project, or account, that is charged."),
    *scheduler_flags(leave_out=OWN_LINES),
    click.option("--nodes", metavar="N", help="How many nodes."),
    click.option("--cores", metavar="N", help="Cores on each node."),
    click.option("--memory", metavar="SIZE", help="Memory on each node: 8GiB."),
    click.option("--gpus", metavar="N", help="GPUs on each node."),
    click.option("--slots", metavar="N", help="Cut each node into N slots of equal size, not as jobs need."),
    click.option("--lifetime", metavar="TIME", help="For how long at most: 2h, 1-12:00:00."),
    click.option("--idle", metavar="TIME", help="A node without a job for so long ends: 10m."),
    click.option(
        "--carry", type=click.Choice(["direct", "spool"]), help="How jobs get there; else the pilot finds out."
    ),
)


def details(function: F) -> F:
    """Add the options that describe a lease to a command."""
    return with_options(function, OPTIONS)


def read_details(given: dict[str, Any]) -> DetailsView:
    """Parse the options that describe a lease."""
    asked = {name: value for name, value in read_scheduler_flags(given).items() if name not in OWN_LINES}
    own = {field.name for field in fields(DetailsView)}
    typed = {name: text for name, text in given.items() if text is not None and name in own}
    return DetailsView(scheduler=asked, **{name: PARSERS.get(name, str)(text) for name, text in typed.items()})
