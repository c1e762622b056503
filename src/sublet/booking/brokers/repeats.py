"""Removes duplicates where a broker is reached by several routes: the shortest counts, or the one that was first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sublet.booking.candidate import PassedOn
from sublet.booking.model.offer import Answer, Offer, Reason, Remote, list_route

REMEMBERED = timedelta(minutes=10)
MOST = 10_000
DIRECT = 2  # platforms on the route to a broker that we ask ourselves: the broker, and its platform
Source = tuple[str, str]  # the code of the broker that made an offer, and its own name for the platform
Way = tuple[int, str]  # the number of platforms on the route, and the name of the first


@dataclass
class RecentRequests:
    """The requests that came here lately, and the route of each."""

    _ways: dict[tuple[str, str], tuple[tuple[str, ...], datetime]] = field(default_factory=dict)

    def note(self, person: str, request: str, via: tuple[str, ...], now: datetime) -> bool:
        """Whether to answer a request: it is new, or comes again by the route by which it came first."""
        self._forget(now)
        return self._ways.setdefault((person, request), (via, now))[0] == via

    def _forget(self, now: datetime) -> None:
        oldest = next(iter(self._ways), None)
        while oldest and (len(self._ways) >= MOST or abs(now - self._ways[oldest][1]) > REMEMBERED):
            del self._ways[oldest]
            oldest = next(iter(self._ways), None)


def drop_repeats(passed: Mapping[str, PassedOn]) -> tuple[dict[str, Answer], list[Reason]]:
    """Return each broker's answer without the offers that another makes by a shorter route, and the reasons."""
    shortest = _find_shortest(passed)
    answers: dict[str, Answer] = {}
    reasons: list[Reason] = []
    for name, each in passed.items():
        whole = each.answered.answer
        left = tuple(offer for offer in whole.offers if _is_shortest(offer, shortest))
        answers[name] = replace(whole, offers=left) if len(left) < len(whole.offers) else whole
        if repeated := [offer for offer in whole.offers if offer not in left]:
            reasons.append(_describe(name, repeated[0], shortest))
    return answers, reasons


def _find_shortest(passed: Mapping[str, PassedOn]) -> dict[Source, Way]:
    ways: dict[Source, Way] = {}
    for each in passed.values():
        for offer in each.answered.answer.offers:
            if source := _find_source(offer):
                ways[source] = min(_find_way(offer), ways.get(source, _find_way(offer)))
    return ways


def _is_shortest(offer: Offer, shortest: Mapping[Source, Way]) -> bool:
    """Whether to keep an offer; what a broker itself offers is always kept, whatever others say of theirs."""
    source, way = _find_source(offer), _find_way(offer)
    return source is None or way[0] <= DIRECT or shortest[source] == way


def _find_source(offer: Offer) -> Source | None:
    terms = offer.terms
    if not isinstance(terms, Remote) or not terms.maker:
        return None
    return terms.maker, list_route(offer.platform, terms)[-1]


def _find_way(offer: Offer) -> Way:
    return len(list_route(offer.platform, offer.terms)), offer.platform


def _describe(broker: str, offer: Offer, shortest: Mapping[Source, Way]) -> Reason:
    where = "/".join(list_route(offer.platform, offer.terms))
    source = _find_source(offer)
    better = shortest[source][1] if source else ""
    why = f"{where} is offered by way of {better}, which is shorter: it is the same platform of the same broker."
    return Reason("urn:broker-reached-twice", "platform", why, platform=broker)
