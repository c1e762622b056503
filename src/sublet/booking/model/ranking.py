"""Which of several offers is better: the order of every list of offers, of which `run` accepts the first.

A predicted start counts as a minute after its p90, when it is nearly sure. So a booked offer comes before a prediction
of about the same time, and a queue with a good track record still comes first if it is clearly sooner. An offer that
needs a person to sign in first comes last, whatever it promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args

Preference = Literal["soonest", "here", "cheapest"]
PREFERENCES: tuple[Preference, ...] = get_args(Preference)
SAME_START = timedelta(minutes=1)  # a prediction must be better by this to come before a booked offer
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rated:
    """The properties of an offer that are compared."""

    platform: str
    start: datetime
    terms: str  # booked, predicted, remote
    p90: datetime | None = None  # of a prediction, by this or another broker
    price: float = 0.0
    cores: int = 0
    memory: int = 0
    is_here: bool = False  # on the service's own machine
    needs_login: bool = False
    detail: str = ""  # tells similar offers apart, so that the order is always the same

    @property
    def is_away(self) -> bool:
        """Whether the offer is on another machine."""
        return not self.is_here

    @property
    def is_guess(self) -> bool:
        """Whether the start is only predicted, here or by another broker."""
        return self.p90 is not None or self.terms == "predicted"

    @property
    def sure_start(self) -> datetime:
        """When the session will almost certainly have started."""
        if not self.is_guess:
            return self.start
        return max(self.start, self.p90 or self.start) + SAME_START


ORDERS: dict[Preference, tuple[str, ...]] = {  # what is compared first, second, …: lower is better
    "soonest": ("needs_login", "sure_start", "is_guess", "price", "is_away"),
    "here": ("needs_login", "is_away", "sure_start", "is_guess", "price"),
    "cheapest": ("needs_login", "price", "sure_start", "is_guess", "is_away"),
}
THEN = ("cores", "memory", "start", "platform", "terms", "detail")  # so that the order is always the same
KEYS = {prefer: attrgetter(*order, *THEN) for prefer, order in ORDERS.items()}


def rank(rated: Rated, prefer: Preference = "soonest") -> tuple[Any, ...]:
    """Return the key by which offers are sorted, the best first."""
    key: tuple[Any, ...] = KEYS[prefer](rated)
    return key


def sort_offers(offers: Iterable[T], rate: Callable[[T], Rated], prefer: Preference = "soonest") -> list[T]:
    """Sort offers, the best first."""
    return sorted(offers, key=lambda offer: rank(rate(offer), prefer))


def explain_choice(chosen: Rated, others: Sequence[Rated], prefer: Preference = "soonest") -> str:
    """Explain why an offer beats the best one of each other platform: `booked; preferred over mine: predicted`."""
    best: dict[str, Rated] = {}
    for other in sorted(others, key=lambda each: rank(each, prefer)):
        if other.platform != chosen.platform:
            best.setdefault(other.platform, other)
    if not best:
        return ""
    over = ", ".join(f"{name}: {_drawback(other, chosen, prefer)}" for name, other in best.items())
    return f"{chosen.terms}; preferred over {over}"


def _drawback(other: Rated, chosen: Rated, prefer: Preference) -> str:
    """Describe how the other offer is in the first property in which the two differ."""
    differs = next((name for name in ORDERS[prefer] if getattr(other, name) != getattr(chosen, name)), "")
    if differs == "needs_login":
        return "login needed" if other.needs_login else "not chosen"
    if differs == "is_away":
        return "not this machine" if other.is_away else "this machine"
    if differs == "price":
        return "costs more" if other.price > chosen.price else "costs less"
    if differs == "is_guess" or (differs == "sure_start" and other.start <= chosen.start + SAME_START):
        return other.terms
    return "later" if differs == "sure_start" else "equally good"
