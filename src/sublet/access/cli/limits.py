"""The options for limits and expiry, shared by several commands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from sublet.access.model.access import AMOUNTS
from sublet.access.model.access_words import LIMIT_TEXTS, limits_text, parse_amount, parse_expires
from sublet.access.views.access import LimitsView
from sublet.access.views.convert import limits_of
from sublet.cli.command import with_options

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS = (
    *(
        click.option(f"--{name.replace('_', '-')}", metavar=metavar, help=help)
        for name, (metavar, help, *_) in LIMIT_TEXTS.items()
    ),
    click.option("--expires", metavar="WHEN", help="The last day, 2027-06-30 (UTC); or for how long: 90d."),
)


def limits(function: F) -> F:
    """Give a command the options for limits and expiry."""
    return with_options(function, OPTIONS)


def read_limits(given: dict[str, str | None]) -> tuple[LimitsView, datetime | None]:
    """Read the limits and the expiry that were given."""
    typed = {name: text for name in AMOUNTS if (text := given.get(name)) is not None}
    expires = given.get("expires")
    until = parse_expires(expires, datetime.now(UTC)) if expires else None
    return LimitsView(**{name: parse_amount(name, text) for name, text in typed.items()}), until


def describe_limits(view: LimitsView) -> str:
    """Describe limits on one line."""
    return limits_text(limits_of(view))
