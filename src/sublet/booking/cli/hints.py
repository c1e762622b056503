"""Hints in an answer, which earlier runs suggest, and asking again with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from sublet.booking.model.offer import HINT
from sublet.booking.views.offers import OfferSetView, ReasonView
from sublet.cli.output import Output
from sublet.kernel.errors import BadRequest

F = TypeVar("F", bound=Callable[..., Any])


def take_option(function: F) -> F:
    """Add the option --take, which applies hints of the answer at once."""
    return click.option(
        "--take",
        metavar="N",
        type=click.IntRange(min=1),
        multiple=True,
        help="Take hint N of the answer, and ask again with it.",
    )(function)


def list_hints(view: OfferSetView) -> list[ReasonView]:
    """Return the hints of an answer, in the order of their numbers."""
    return [reason for reason in view.reasons if reason.kind == HINT]


def describe_hints(view: OfferSetView) -> list[str]:
    """Return each hint with its number and its advice."""
    return [
        f"hint {number}: {hint.message} --{hint.field} {hint.nearest} is enough. Take it with: --take {number}"
        if hint.field != "start"
        else f"hint {number}: {hint.message} Take it with: --take {number}"
        for number, hint in enumerate(list_hints(view), 1)
    ]


def choose_hints(out: Output, view: OfferSetView) -> list[int]:
    """Let the person at the terminal choose a hint: a digit takes one, any other key none."""
    hints = list_hints(view)
    if not hints or not (out.can_ask and out.for_people):
        return []
    numbers = "/".join(str(number) for number in range(1, len(hints) + 1))
    click.echo(f"Take a hint? [{numbers}, any other key: none] ", nl=False, err=True)
    key = click.getchar()
    click.echo(key if key.isprintable() else "", err=True)
    return [int(key)] if key.isdigit() and 1 <= int(key) <= len(hints) else []


def apply_hints(asked: dict[str, Any], view: OfferSetView, numbers: Sequence[int]) -> dict[str, Any]:
    """Return the request with these hints applied; raise BadRequest if the answer has no hint of that number."""
    hints = list_hints(view)
    missing = [number for number in numbers if number > len(hints)]
    if missing:
        has = f"it has {len(hints)}" if hints else "it has none"
        raise BadRequest(detail=f"the answer has no hint {missing[0]}: {has}", hint="Leave out --take to see them.")
    chosen = {hints[number - 1].field: hints[number - 1].nearest for number in numbers}
    return asked | {field: int(text) if text.isdigit() else text for field, text in chosen.items()}
