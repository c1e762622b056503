"""Options that select sessions, and the calls that list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sublet.booking.calls import sessions
from sublet.booking.views.sessions import SessionPage
from sublet.cli.command import with_options

if TYPE_CHECKING:
    from sublet.client.link import Link

F = TypeVar("F", bound=Callable[..., Any])
PAGE, MOST = 1000, 100_000  # sessions in one call, and in one list
EVERYONE = "everyone"
OPTIONS = (
    click.option("--everyone", is_flag=True, help="Everyone's, not only your own; for operators."),
    click.option("--person", metavar="WHO", help="Of this person, by any of their addresses; for operators."),
    click.option("--phase", metavar="PHASE", help="Only those in this phase: RUNNING, FAILED …"),
    click.option("--name", metavar="NAME", help="Only those with this name; `fit-*`: whose names begin so."),
    click.option("--kind", metavar="KIND", help="Only this kind: command, docker-container, interactive …"),
    click.option("--platform", metavar="NAME", help="Only those on this platform."),
    click.option("--app", metavar="NAME[@N]", help="Only of this app, or of one version of it."),
    click.option("--annex", metavar="NAME", help="Only those on this annex, and its leases."),
    click.option("--since", metavar="WHEN", help="Asked for since a day or an instant, or so long ago: 7d."),
    click.option("--until", metavar="WHEN", help="Asked for before a day or an instant."),
)


def filter_options(function: F) -> F:
    """Add all filter options to a command."""
    return with_options(function, OPTIONS)


def filters_of(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options as the calls take them."""
    if chosen["everyone"] and chosen["person"]:
        raise click.UsageError("Use either --everyone or --person, not both.")
    filters = {name: chosen[name] for name in ("name", "kind", "platform", "app", "annex") if chosen[name]}
    if who := EVERYONE if chosen["everyone"] else chosen["person"]:
        filters["person"] = who
    if chosen["phase"]:
        filters["phase"] = chosen["phase"]
    if chosen["since"] or chosen["until"]:
        from sublet.cli.instants import read_past  # plain `ps` doesn't need it

        filters |= {name: read_past(chosen[name]) for name in ("since", "until") if chosen[name]}
    return filters


def list_sessions(link: Link, *, limit: int = MOST, **filters: Any) -> SessionPage:
    """List up to `limit` sessions, in as many calls as necessary."""
    page = link.do(sessions.sessions(limit=min(limit, PAGE), **filters))
    while page.next and len(page.items) < limit:
        more = link.do(sessions.sessions(limit=min(limit - len(page.items), PAGE), after=page.next, **filters))
        page = SessionPage(items=(*page.items, *more.items), next=more.next)
    return page
