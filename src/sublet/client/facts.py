"""What both clients show of offers and sessions, however they wait."""

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
    """What an offer says."""

    def __init__(self, view: OfferView) -> None:
        """All of it is in `view`."""
        self.view = view

    @property
    def id(self) -> str:
        """Its id, and that of the session it can become."""
        return self.view.id

    @property
    def platform(self) -> str:
        """Where."""
        return self.view.platform

    @property
    def start(self) -> datetime:
        """From when."""
        return self.view.start

    @property
    def until(self) -> datetime:
        """Till when."""
        return self.view.until

    @property
    def why(self) -> str:
        """Why it is among the offers: earliest, largest, cheapest …"""
        return self.view.why

    @property
    def run_time(self) -> RunTimeView | None:
        """How long it will really run, as earlier runs of the program did; None: too few are known."""
        return self.view.run_time

    @property
    def needs_login(self) -> bool:
        """Whether somebody must sign in there first."""
        return self.view.needs_login

    def __repr__(self) -> str:
        """Short, for a person at a prompt."""
        return f"<offer {self.view.short}: {self.platform}, {self.start:%Y-%m-%d %H:%M} UTC, {self.why}>"


class OfferList(Sequence[O], Generic[O]):
    """The answer to a request: offers, the best first; or none, and the reasons."""

    def __init__(self, view: OfferSetView, offers: Sequence[O]) -> None:
        """All of the answer is in `view`."""
        self.view = view
        self._offers = tuple(offers)

    @property
    def result(self) -> str:
        """YES or NO."""
        return self.view.result

    @property
    def reasons(self) -> tuple[ReasonView, ...]:
        """Why not: of each platform that said no."""
        return self.view.reasons

    @property
    def hints(self) -> tuple[ReasonView, ...]:
        """What earlier runs, calendars and prices advise; take one by asking again with its `field` as it says.

        offers = client.ask(run=["python", "sim.py"], **{hint.field: hint.nearest})
        """
        return tuple(reason for reason in self.view.reasons if reason.kind == HINT)

    @property
    def expires(self) -> datetime | None:
        """Until when offers can be accepted."""
        return self.view.expires

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The platforms that gave no answer in time, or could not."""
        return self.view.unanswered

    def choose(self, prefer: str = "") -> O:
        """The best one, as `sublet run` takes it: the soonest, or this machine's, or the cheapest.

        `prefer` is `soonest`, `here` or `cheapest`; else the service's own setting counts. NoOffers if there is none,
        and LoginNeeded if somebody must sign in first and no platform was named.
        """
        if not self._offers:
            raise no_offers(self.view)
        best = choose(self.view, prefer).offer
        if best.needs_login and not self.view.platform:
            raise login_needed(self.view.offers)
        return self._offers[self.view.offers.index(best)]

    def __len__(self) -> int:
        """How many offers there are."""
        return len(self._offers)

    def __iter__(self) -> Iterator[O]:
        """One offer after the other."""
        return iter(self._offers)

    @overload
    def __getitem__(self, index: int) -> O: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[O]: ...
    def __getitem__(self, index: int | slice) -> O | Sequence[O]:
        """One of them; when there are none, NoOffers with the reasons."""
        if not self._offers and isinstance(index, int):
            raise no_offers(self.view)
        return self._offers[index]

    def __repr__(self) -> str:
        """Short, for a person at a prompt."""
        count = f"{len(self)} offer{'' if len(self) == 1 else 's'}"
        return f"<{self.result}: {count}>" if self._offers else f"<NO: {no_offers(self.view).message}>"


class SessionFacts:
    """What was last seen of a session."""

    def __init__(self, view: SessionView) -> None:
        """All of it is in `view`."""
        self.view = view

    @property
    def id(self) -> str:
        """Its id."""
        return self.view.id

    @property
    def name(self) -> str:
        """What its asker called it."""
        return self.view.name

    @property
    def phase(self) -> str:
        """Where it is, in IVOA's words."""
        return self.view.phase

    @property
    def platform(self) -> str:
        """Where it runs."""
        return self.view.platform

    @property
    def start(self) -> datetime | None:
        """When it is planned to start; `view.started` is when it did."""
        return self.view.start

    @property
    def until(self) -> datetime | None:
        """When its time ends."""
        return self.view.until

    @property
    def marks(self) -> frozenset[str]:
        """What is so of it for now: paused, warned, lost, login-needed, unreachable, held-back."""
        return frozenset(self.view.marks)

    @property
    def condition(self) -> str:
        """How it is, in words."""
        return self.view.condition

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.view.phase in OVER

    @property
    def end(self) -> EndView | None:
        """How it ended."""
        return self.view.end

    @property
    def exit_code(self) -> int | None:
        """The exit code of what ran, if it exited by itself."""
        return self.view.end.code if self.view.end else None

    def __repr__(self) -> str:
        """Short, for a person at a prompt."""
        how = f": {self.view.end.sentence}" if self.view.end and self.phase == Phase.FAILED else ""
        return f"<session {self.view.short}: {self.phase}{how}>"


class Result(bytes):
    """A file that a session left: its bytes."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file here."""
        with open(path, "wb") as file:
            file.write(self)

    def text(self) -> str:
        """As text in UTF-8."""
        return self.decode("utf-8", "replace")


def no_offers(view: OfferSetView) -> NoOffers:
    """The error for an answer that is NO."""
    return NoOffers.because(view.reasons)
