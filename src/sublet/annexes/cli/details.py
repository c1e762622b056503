"""The options with which a person says what a lease is to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sublet.annexes.views.annexes import DetailsView
from sublet.booking.model.amounts import parse_count, parse_duration, parse_memory
from sublet.cli.command import with_options

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
    """Give a command the options that say what a lease is to be."""
    return with_options(function, OPTIONS)


def said(given: dict[str, str | None]) -> DetailsView:
    """What was typed of them."""
    typed = {name: text for name, text in given.items() if text is not None}
    return DetailsView(**{name: PARSERS.get(name, str)(text) for name, text in typed.items()})
