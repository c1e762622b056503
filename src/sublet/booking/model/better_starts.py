"""Hints on start times: an hour that is sooner or cheaper, and smaller requests that would start sooner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.booking.model.affordable import WORTH, find_cheapest_start, find_price
from sublet.booking.model.amounts import parse_count, parse_duration, parse_memory
from sublet.booking.model.offer import HINT, Offer, Reason
from sublet.booking.model.prices import PriceQuoter
from sublet.booking.model.request import Range, Request, Window
from sublet.booking.model.starts import roughly

SOONER = timedelta(minutes=30)  # a start must be this much earlier to be worth a hint
ROOM = timedelta(hours=6)  # the length of the suggested start window
SearchStart = Callable[[Request], datetime | None]  # returns when the platform would start such a request


@dataclass(frozen=True, slots=True)
class StartAdviser:
    """The search for better start times on the platform of the best offer."""

    offers: Sequence[Offer]  # the best first
    request: Request
    prices: PriceQuoter
    search: SearchStart

    @property
    def best(self) -> Offer:
        """The offer with which other starts are compared."""
        return self.offers[0]

    def advise(self, hints: Sequence[Reason], now: datetime) -> list[Reason]:
        """Return the hints, each with how much sooner the request would start, and better times to start."""
        made = [self._tell_sooner(hint, now) for hint in hints]
        soonest, cheapest = self._find_sooner(now), self._find_cheaper(now)
        made += [reason for reason in (soonest, cheapest) if reason]
        return made[:-1] if soonest and cheapest and soonest.nearest == cheapest.nearest else made

    def _find_sooner(self, now: datetime) -> Reason | None:
        """Return a hint at an earlier start that costs no more, if the offer starts later than was requested."""
        asked = self.request
        wanted = max(now, min((window.start for window in asked.windows), default=self.best.start))
        if self.best.start < wanted + SOONER:
            return None
        start = self.search(replace(asked, windows=(), recurring=()))
        if start is None or start > self.best.start - SOONER or self._compare_price(start) > 1:
            return None
        return self._advise_start(start, start)

    def _find_cheaper(self, now: datetime) -> Reason | None:
        """Return a hint at an hour that costs less, if there is room then."""
        hour = find_cheapest_start(self.best, self.prices, now)
        if hour is None:
            return None
        start = self.search(replace(self.request, windows=(Window(hour, hour + ROOM),), recurring=()))
        cheapest = min(find_price(offer, self.prices, offer.start) for offer in self.offers)
        if start is None or self._compare_price(start) > WORTH or cheapest <= find_price(self.best, self.prices, start):
            return None
        return self._advise_start(hour, start)

    def _advise_start(self, begin: datetime, start: datetime) -> Reason:
        gains = []
        if start <= self.best.start - SOONER:
            gains.append(f"start {roughly(self.best.start - start)} sooner")
        ratio = self._compare_price(start)
        if ratio <= WORTH:
            gains.append(f"cost {_percent(1 - ratio)} less")
        message = f"From {begin:%Y-%m-%d %H:%M} UTC on it would {', and '.join(gains)}."
        nearest = f"{begin:%Y-%m-%dT%H:%M:%SZ}/PT{ROOM // timedelta(hours=1)}H"
        return Reason(HINT, "start", message, nearest=nearest, platform=self.best.platform)

    def _compare_price(self, start: datetime) -> float:
        """Return the price at a start as a fraction of the offered price."""
        offered = find_price(self.best, self.prices, self.best.start)
        return find_price(self.best, self.prices, start) / offered if offered else 1.0

    def _tell_sooner(self, hint: Reason, now: datetime) -> Reason:
        """Add to a hint to ask for less how much sooner the request would start."""
        if self.best.start < now + SOONER or hint.field not in CHANGES:
            return hint
        start = self.search(CHANGES[hint.field](self.request, hint.nearest))
        if start is None or start > self.best.start - SOONER:
            return hint
        sooner = roughly(self.best.start - start)
        return replace(hint, message=f"{hint.message} With less it would start {sooner} sooner.")


def _percent(part: float) -> str:
    return f"{part * 100:.0f} %"


def _ask_memory(request: Request, text: str) -> Request:
    return replace(request, compute=replace(request.compute, memory=Range.exactly(parse_memory(text))))


def _ask_cores(request: Request, text: str) -> Request:
    return replace(request, compute=replace(request.compute, cores=Range.exactly(parse_count(text))))


def _ask_time(request: Request, text: str) -> Request:
    return replace(request, duration=parse_duration(text))


CHANGES: dict[str, Callable[[Request, str], Request]] = {
    "memory": _ask_memory,
    "cores": _ask_cores,
    "time": _ask_time,
}
