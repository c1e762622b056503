"""Errors between a request and its session: offers that have expired, and requests without offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sublet.kernel.errors.error import SubletError


class NotBookable(SubletError):
    """The nodes are no longer free at that time."""

    hint = "Ask again: another offer may fit."
    status = 409


class OfferExpired(SubletError):
    """The offer was held until {expires} and has expired."""

    hint = "Ask again."
    status = 409


class OfferGaveWay(SubletError):
    """This offer gave way to your later request {offerset}, which needed its room."""

    hint = "Ask again. `sublet ask --keep-offers` leaves your earlier offers as they are."
    status = 409


class Refusal(Protocol):
    """One reason for a NO."""

    @property
    def field(self) -> str:
        """The field of the request that can't be met."""

    @property
    def message(self) -> str:
        """The reason as a sentence."""

    @property
    def wanted(self) -> str:
        """The value that was requested."""

    @property
    def limit(self) -> str:
        """The value that is available."""

    @property
    def nearest(self) -> str:
        """The closest alternative that would be possible."""

    @property
    def platform(self) -> str:
        """The platform that gave this reason."""


class NoOffers(SubletError):
    """No platform can run this request."""

    hint = "`sublet ask` shows each reason and the nearest thing that would be possible."
    status = 400

    @property
    def reasons(self) -> tuple[Refusal, ...]:
        """The reasons, as in `Offers.reasons`."""
        reasons = self.values.get("reasons", ())
        return reasons if isinstance(reasons, tuple) else ()

    @classmethod
    def because(cls, reasons: Sequence[Refusal]) -> NoOffers:
        """Return the error with these reasons as its message."""
        nearest = "; ".join(reason.nearest for reason in reasons if reason.nearest)
        words = " ".join(reason.message for reason in reasons)
        return cls(words, hint=f"What would be possible: {nearest}." if nearest else "", reasons=tuple(reasons))


class CostsMoney(SubletError):
    """It would cost {price}."""

    hint = "Say how much it may cost with max_cost, or take an offer yourself: `client.ask(…)[0].accept()`."
    status = 409
