"""The facts about offers and sessions that both clients share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Generic, TypeVar, overload

from sublet.booking.model.offer import HINT
from sublet.booking.model.phases import OVER, Phase
from sublet.booking.views.offers import OfferSetView, OfferView, ReasonView
from sublet.booking.views.quotes import RunTimeView
from sublet.booking.views.sessions import EndView, SessionView
from sublet.client.ranking import choose, login_needed
from sublet.kernel.errors import NoOffers

O = TypeVar("O")  # noqa: E741 - an offer, of either client


class OfferFacts:
    """An offer's facts."""

    def __init__(self, view: OfferView) -> None:
        """Show the facts of a view, which is available as `view`."""
        self.view = view

    @property
    def id(self) -> str:
        """The offer's id, and that of the session that it can become."""
        return self.view.id

    @property
    def platform(self) -> str:
        """The platform."""
        return self.view.platform

    @property
    def start(self) -> datetime:
        """The planned start."""
        return self.view.start

    @property
    def until(self) -> datetime:
        """The planned end."""
        return self.view.until

    @property
    def why(self) -> str:
        """What distinguishes the offer: earliest, largest, cheapest …"""
        return self.view.why

    @property
    def run_time(self) -> RunTimeView | None:
        """The expected run time, by earlier runs of the program; None if there were too few."""
        return self.view.run_time

    @property
    def needs_login(self) -> bool:
        """Whether someone has to sign in to the platform first."""
        return self.view.needs_login

    def __repr__(self) -> str:
        """Return a short description for interactive use."""
        return f"<offer {self.view.short}: {self.platform}, {self.start:%Y-%m-%d %H:%M} UTC, {self.why}>"


class OfferList(Sequence[O], Generic[O]):
    """The answer to a request: offers, best first; or none, with the reasons."""

    def __init__(self, view: OfferSetView, offers: Sequence[O]) -> None:
        """Show the facts of a view, which is available as `view`."""
        self.view = view
        self._offers = tuple(offers)

    @property
    def result(self) -> str:
        """The answer: YES or NO."""
        return self.view.result

    @property
    def reasons(self) -> tuple[ReasonView, ...]:
        """The reasons of each platform that can't run the request."""
        return self.view.reasons

    @property
    def hints(self) -> tuple[ReasonView, ...]:
        """Advice from earlier runs, calendars and prices; follow a hint by asking again with its `field` changed.

        For example::

            offers = client.ask(run=["python", "sim.py"], **{hint.field: hint.nearest})
        """
        return tuple(reason for reason in self.view.reasons if reason.kind == HINT)

    @property
    def expires(self) -> datetime | None:
        """The time until which offers can be accepted."""
        return self.view.expires

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The platforms that didn't answer in time, or couldn't."""
        return self.view.unanswered

    def choose(self, prefer: str = "") -> O:
        """Return the best offer, as `sublet run` does: the soonest, or this machine's, or the cheapest.

        `prefer` is `soonest`, `here` or `cheapest`; by default the service's own setting. Raise NoOffers if there is
        none, and LoginNeeded if someone has to sign in first and the request named no platform.
        """
        if not self._offers:
            raise no_offers(self.view)
        best = choose(self.view, prefer).offer
        if best.needs_login and not self.view.platform:
            raise login_needed(self.view.offers)
        return self._offers[self.view.offers.index(best)]

    def __len__(self) -> int:
        """Return the number of offers."""
        return len(self._offers)

    def __iter__(self) -> Iterator[O]:
        """Iterate over the offers, best first."""
        return iter(self._offers)

    @overload
    def __getitem__(self, index: int) -> O: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[O]: ...
    def __getitem__(self, index: int | slice) -> O | Sequence[O]:
        """Return an offer; raise NoOffers with the reasons if there are none."""
        if not self._offers and isinstance(index, int):
            raise no_offers(self.view)
        return self._offers[index]

    def __repr__(self) -> str:
        """Return a short description for interactive use."""
        count = f"{len(self)} offer{'' if len(self) == 1 else 's'}"
        return f"<{self.result}: {count}>" if self._offers else f"<NO: {no_offers(self.view).message}>"


class SessionFacts:
    """A session, as it was last seen."""

    def __init__(self, view: SessionView) -> None:
        """Show the facts of a view, which is available as `view`."""
        self.view = view

    @property
    def id(self) -> str:
        """The session's id."""
        return self.view.id

    @property
    def name(self) -> str:
        """The name that its owner gave it."""
        return self.view.name

    @property
    def phase(self) -> str:
        """The phase, in IVOA's terms."""
        return self.view.phase

    @property
    def platform(self) -> str:
        """The platform that it runs on."""
        return self.view.platform

    @property
    def start(self) -> datetime | None:
        """The planned start; `view.started` is the actual one."""
        return self.view.start

    @property
    def until(self) -> datetime | None:
        """The planned end."""
        return self.view.until

    @property
    def marks(self) -> frozenset[str]:
        """Temporary conditions: paused, warned, lost, given-up, login-needed, unreachable, held-back."""
        return frozenset(self.view.marks)

    @property
    def condition(self) -> str:
        """The session's condition in words."""
        return self.view.condition

    @property
    def over(self) -> bool:
        """Whether the session has reached a final phase."""
        return self.view.phase in OVER

    @property
    def end(self) -> EndView | None:
        """How the session ended; None if it hasn't."""
        return self.view.end

    @property
    def exit_code(self) -> int | None:
        """The program's exit code, if it exited by itself."""
        return self.view.end.code if self.view.end else None

    def __repr__(self) -> str:
        """Return a short description for interactive use."""
        how = f": {self.view.end.sentence}" if self.view.end and self.phase == Phase.FAILED else ""
        return f"<session {self.view.short}: {self.phase}{how}>"


class Result(bytes):
    """The content of a result file, as bytes."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the content to a local file."""
        with open(path, "wb") as file:
            file.write(self)

    def text(self) -> str:
        """Return the content as text, decoded as UTF-8."""
        return self.decode("utf-8", "replace")


def no_offers(view: OfferSetView) -> NoOffers:
    """Return the error for an answer that is NO."""
    return NoOffers.because(view.reasons)
