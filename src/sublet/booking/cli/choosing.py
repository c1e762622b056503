"""Chooses which offer `run` accepts: the best one, and never silently one that needs a login."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sublet.booking.model.ranking import PREFERENCES
from sublet.booking.views.offers import OfferSetView
from sublet.cli.output import Output
from sublet.cli.prompts import ask_yes_or_no
from sublet.client.ranking import Choice, choose, login_needed

F = TypeVar("F", bound=Callable[..., Any])
NOW = "Sign in first with `sublet system login {name}`, then run it again."


def prefer_option(function: F) -> F:
    """Add the option --prefer, which says what makes an offer the best."""
    return click.option(
        "--prefer",
        type=click.Choice(PREFERENCES),
        default=None,
        help="Which offer is the best; else as the setting `prefer` says.",
    )(function)


def choose_offer(out: Output, view: OfferSetView, prefer: str | None) -> Choice:
    """Return the best offer; if it needs a login, sign in first, or raise LoginNeeded."""
    choice = choose(view, prefer or "")
    if choice.offer.needs_login:
        _settle_login(out, view, choice.offer.platform)
    return choice


def _settle_login(out: Output, view: OfferSetView, name: str) -> None:
    """Sign in now if the person agrees; without that, only a session on a named platform may wait for the login."""
    if out.can_ask and ask_yes_or_no(f"{name} needs you to sign in. Sign in now?", NOW.format(name=name), default=True):
        _sign_in(out, name)
    elif not view.platform:
        raise login_needed(view.offers)
    else:
        out.note(f"note: {name}: it waits until you sign in: sublet system login {name}")


def _sign_in(out: Output, name: str) -> None:
    import asyncio  # only needed to sign in

    from sublet.systems.cli.logins import login_of

    opening = login_of(name)
    if not opening.shared:
        out.note(f"note: {name} allows no shared connection; in another terminal: sublet system login {name}")
        return
    record = asyncio.run(opening.open())
    out.note(f"You are signed in to {name} as {record.target}.")
