"""Open offers: listing and rejecting them, and giving them back after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

import click

from sublet.booking.calls import offers as calls
from sublet.booking.calls import sessions
from sublet.booking.cli.asking import describe_standing, draw_offers
from sublet.booking.views.offers import OfferSetView
from sublet.cli.command import command
from sublet.cli.interrupts import cleaning_up_on_signals
from sublet.cli.output import Output
from sublet.client.link import Link
from sublet.kernel.errors import SubletError
from sublet.kernel.texts import count_text


@command("offers", "sublet offers")
def offers(out: Output) -> None:
    """List the offers that you can still accept.

    Booked offers are held for you for a few minutes; in a shared queue nothing is held. A later request of yours
    takes their room if it needs it, unless you use --keep-offers; `sublet reject --all` releases them at once.
    """
    listed = out.link().do(calls.open_offers())
    views = [offer for offerset in listed.items for offer in offerset.offers]
    now = datetime.now(UTC)
    out.show(
        listed,
        lambda: draw_offers(views, now) if views else ["Nothing is held for you."],
        lambda: (view.short for view in views),
    )
    if out.for_people and views:
        out.note(
            f"\n{count_text(len(views), 'offer')}, {describe_standing(views, now)}. Give all back: sublet reject --all"
        )


@command("reject", "sublet reject 3f2a", "sublet reject --all")
@click.option("--all", "every", is_flag=True, help="All offers that you can still accept.")
@click.argument("offer", nargs=-1)
def reject(out: Output, every: bool, offer: tuple[str, ...]) -> None:
    """Decline offers, and release what was held for them."""
    if every == bool(offer):
        raise click.UsageError("Name the offers to decline, or say --all.")
    if every:
        rejected = out.link().do(calls.reject_all())
        sentence = f"{count_text(rejected.offers, 'offer')} {'is' if rejected.offers == 1 else 'are'} given back."
        out.show(rejected, lambda: [sentence if rejected.offers else "Nothing was held for you."], lambda: ())
        return
    link = out.link()
    views = [link.do(sessions.reject(name)) for name in offer]
    out.show(views, lambda: (f"{view.short} is rejected." for view in views), lambda: (view.short for view in views))


@contextmanager
def giving_back(link: Link, view: OfferSetView) -> Iterator[None]:
    """Reject these offers if an error, a refusal, Ctrl-C or a signal comes before one of them is accepted."""
    beside = Link(replace(link.address, home=None))  # a signal may come in the middle of another call

    def give_back(by: Link) -> None:
        with suppress(SubletError):
            by.do(calls.reject_set(view.id))

    with cleaning_up_on_signals(lambda: give_back(beside)):
        try:
            yield
        except BaseException:
            give_back(link)
            raise
