"""From a request and a calendar to offers that can be accepted, or to the reasons why there are none.

All offers of a set have the minimum amounts, at different times, except those marked `largest`. An offer that could
start before its hold ends slides: it may begin as late as `latest_start`, and is held for all that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from sublet.booking.model.calendar import NOTHING, Calendar
from sublet.booking.model.holds import hold_of
from sublet.booking.model.largest import most_on, most_within
from sublet.booking.model.limits import LIMIT, check_costs, check_limits, check_pledged, list_named_pools, storage_of
from sublet.booking.model.offer import EXECUTABLE_REQUIRED, Answer, Node, Offer, Quote, Reason
from sublet.booking.model.pledge import pool_of
from sublet.booking.model.pools import Spot, find_earliest, list_placements, sizes_of_pools
from sublet.booking.model.prices import PriceQuoter
from sublet.booking.model.request import Request, Window
from sublet.booking.model.shape import Shape
from sublet.booking.model.starts import (
    DAY,
    MINUTE,
    QUARTER,
    Opening,
    describe_asked_times,
    find_named_time,
    instant,
    next_second,
    parts,
    roughly,
    time_in_words,
    whole_seconds,
)
from sublet.booking.model.terms import Terms
from sublet.booking.model.windows import SECOND, last_start, list_named_windows, windows_of, zone_of
from sublet.kernel.texts import describe_duration

START = "schedule.requested.start"
NO_POOLS: Mapping[str, str] = MappingProxyType({})
YEAR = timedelta(days=366)
LEAST_HOLD = timedelta(seconds=30)  # nobody can read and accept an offer in less time
SOON = 14 * DAY  # recurring windows are first searched this far ahead


@dataclass(frozen=True, slots=True)
class WayFacts:
    """What the search needs to know of a way: its name, and how long it takes to get ready."""

    name: str
    prepare: timedelta = timedelta(0)


def find_offers(
    request: Request,
    calendar: Calendar,
    *,
    platform: str,
    ways: Sequence[WayFacts],
    pools: Sequence[str],
    prices: PriceQuoter,
    metrics: tuple[Quote, ...],
    now: datetime,
    hold: timedelta,
    release: timedelta,
    prepare: timedelta,
    horizon: timedelta = YEAR,
    longest: timedelta | None = None,
    at_most: int = 6,
    pledge: Mapping[str, int] = NOTHING,
) -> Answer:
    """Return the useful offers of one platform, the earliest first, or every reason against the request.

    There are at most `at_most`, and one more for each requested window without an offer. They draw on the pledges in
    `pledge`, and the storage pools in `pools` are preferred.
    """
    there = sizes_of_pools(calendar, pools)
    reasons = check_limits(request, calendar, platform=platform, pools=there, metrics=metrics, longest=longest)
    if request.executable is None:
        reasons.append(EXECUTABLE_REQUIRED)
    elif not ways:
        message = f"{platform} can't run {request.executable.kind} sessions."
        reasons.append(Reason("urn:not-supported", "executable.kind", message, request.executable.kind))
    storage = storage_of(request) if request.storage or request.data else {}
    placements = list_placements(storage, list_named_pools(request), there)
    terms = Terms(
        request, calendar, platform, placements, storage, prices, metrics, now, hold, release, horizon, at_most, pledge
    )
    reasons += check_pledged(request.compute, terms.pledged, terms.where)
    reasons += check_costs(request, terms.bill(terms.least, request.compute.nodes.min), platform)
    if reasons:
        return Answer(reasons=tuple(replace(reason, platform=platform) for reason in reasons))
    first: Answer | None = None
    for way in ways:
        if first is None or way.prepare < ways[0].prepare:  # another way helps only if it gets ready sooner
            answer = _Search(terms, way.name, whole_seconds(prepare + way.prepare)).answer()
            if answer.offers:
                return answer
            first = first or answer
    return first or Answer()


class _Found(NamedTuple):
    """A shape on exact nodes that are free for any start from `start` to `latest`."""

    shape: Shape
    nodes: tuple[str, ...]
    start: datetime
    latest: datetime
    pools: Mapping[str, str] = NO_POOLS  # storage → pool
    storage: Mapping[str, int] | None = None  # storage → bytes, if more than the minimum


@dataclass(slots=True)
class _Search:
    """One search through a calendar, for one way of running the executable."""

    terms: Terms
    way: str
    prepare: timedelta
    soonest: datetime = field(init=False)  # nothing can be ready earlier
    settled: datetime = field(init=False)  # a start from here on needn't slide

    def __post_init__(self) -> None:
        ready = next_second(self.terms.now) + self.prepare
        first = self.terms.request.not_before
        self.soonest = max(ready, next_second(first)) if first else ready
        self.settled = ready + whole_seconds(self.terms.hold)

    def answer(self) -> Answer:
        """Return offers inside the requested windows, or the reason why there are none."""
        request, at_most = self.terms.request, self.terms.at_most
        least, nodes = self.terms.least, request.compute.nodes.min
        for span in (SOON, self.terms.horizon) if request.recurring else (self.terms.horizon,):
            openings = self._openings(min(span, self.terms.horizon))
            earliest = self._first(least, nodes, openings)
            if earliest:
                break
        else:
            return Answer(reasons=(self._no_time(least, nodes),))
        larger = self._larger(earliest, openings)
        larger = [(self._with_storage(each), why) for each, why in larger] or self._roomier(earliest)
        chosen = [(earliest, "earliest"), *larger[: at_most - 1]]
        chosen += self._in_each_window(earliest)
        if request.windows or request.recurring:
            chosen += self._spread(openings, [each for each, _ in chosen], at_most - len(chosen))
        cheapest = self._cheapest([each for each, _ in chosen])
        offers = [self._offer(each, f"{why}, cheapest" if each is cheapest else why) for each, why in chosen]
        return Answer(tuple(sorted(offers, key=lambda offer: offer.start)))

    def _openings(self, span: timedelta) -> list[Opening]:
        """Return the requested windows as far as they can still be met, in order."""
        terms = self.terms
        until = terms.now + terms.horizon
        if not (terms.request.windows or terms.request.recurring):
            return [Opening(self.soonest, until, until)]
        return self._open(windows_of(terms.request, terms.now, span))

    def _open(self, windows: Iterable[Window]) -> list[Opening]:
        terms = self.terms
        until = terms.now + terms.horizon
        openings = []
        for window in windows:
            start, last = max(window.start, self.soonest), last_start(window)
            if start <= last and last - self.prepare > terms.now and start < until:
                openings.append(Opening(start, max(min(window.end, until), start), min(last, max(until, start))))
        return openings

    def _first(self, shape: Shape, nodes: int, openings: Sequence[Opening]) -> _Found | None:
        """Find the earliest start for so many nodes of a shape."""
        later: list[Window] = []
        for opening in openings:
            if opening.start < self.settled:
                soon = self._sliding(shape, nodes, opening)
                if soon:
                    return soon
            start = max(opening.start, self.settled)
            if start < opening.end or start == opening.start:
                later.append(Window(start, opening.end))
        slot = self._slot(shape, nodes, self.terms.request.duration, later) if later else None
        return _Found(shape, slot.nodes, slot.start, slot.start, slot.pools) if slot else None

    def _sliding(self, shape: Shape, nodes: int, opening: Opening) -> _Found | None:
        """Find a start before the hold ends; the offer may then slide to a later start."""
        duration = self.terms.request.duration
        window = Window(opening.start, min(opening.end, self.settled))
        latest = min(self.settled, opening.last)
        slot = self._slot(shape, nodes, duration + (latest - opening.start), [window])
        if slot:
            return _Found(shape, slot.nodes, slot.start, max(latest, slot.start), slot.pools)
        slide = min(LEAST_HOLD, self.terms.hold, latest - opening.start)
        slot = self._slot(shape, nodes, duration + slide, [window])
        if not slot:
            return None
        found = _Found(shape, slot.nodes, slot.start, slot.start + slide, slot.pools)
        return self._as_late_as_possible(found, latest)

    def _as_late_as_possible(self, start: _Found, most: datetime) -> _Found:
        """Move the latest start as far as the next booking on the same nodes allows."""
        low, high = 0, (most - start.latest) // SECOND
        while low < high:
            middle = (low + high + 1) // 2
            offer = self._offer(start._replace(latest=start.latest + middle * SECOND), "")
            if self.terms.calendar.fits(hold_of([offer])):
                low = middle
            else:
                high = middle - 1
        return start._replace(latest=min(most, start.latest + low * SECOND))

    def _slot(self, shape: Shape, nodes: int, length: timedelta, windows: Sequence[Window]) -> Spot | None:
        """Find the earliest start in the windows, rounded up to a whole second if that is free too."""
        slot = self._earliest(shape, nodes, length, windows)
        if slot is None or not slot.start.microsecond:
            return slot
        second = next_second(slot.start)
        inside = any(window.start <= second < window.end for window in windows)
        return (self._earliest(shape, nodes, length, [Window(second, second)]) if inside else None) or slot

    def _earliest(self, shape: Shape, nodes: int, length: timedelta, windows: Sequence[Window]) -> Spot | None:
        terms = self.terms
        lead, tail, pledge = self.prepare, terms.release, pool_of(terms.pledge)
        asked = (shape, nodes, length, windows)
        return find_earliest(terms.calendar, terms.placements, *asked, lead=lead, tail=tail, pledge=pledge)

    def _offer(self, choice: _Found, why: str) -> Offer:
        terms = self.terms
        storage = dict(terms.storage if choice.storage is None else choice.storage)
        bill = terms.bill(choice.shape, len(choice.nodes), storage, choice.start)
        return Offer(
            platform=terms.platform,
            way=self.way,
            start=choice.start,
            latest_start=choice.latest,
            duration=terms.request.duration,
            nodes=choice.nodes,
            shape=choice.shape,
            prepare=self.prepare,
            release=terms.release,
            storage=storage,
            pools=dict(choice.pools) if storage else {},
            costs=bill.total,
            compute_costs=bill.compute,
            storage_costs=bill.storage,
            metrics=terms.metrics,
            why=why,
            scheduler=terms.request.scheduler,
            pledge=dict(terms.pledge),
        )

    def _with_storage(self, choice: _Found) -> _Found:
        """Add as much storage as the request welcomes and the pools have room for."""
        terms = self.terms
        if not any(storage.size.max > storage.size.min for storage in terms.request.storage):
            return choice
        start, end = choice.start - self.prepare, choice.latest + terms.request.duration + terms.release
        most = choice
        for placement in terms.placements:
            room = {pool: terms.calendar.storage_room(pool, start, end) for pool in set(placement.pools.values())}
            sizes = terms.grow_storage(choice.shape, len(choice.nodes), placement.pools, room)
            grown = choice._replace(storage=sizes, pools=placement.pools)
            is_more = sum(sizes.values()) > sum((most.storage or terms.storage).values())
            if is_more and terms.calendar.fits(hold_of([self._offer(grown, "")])):
                most = grown
        return most

    def _roomier(self, earliest: _Found) -> list[tuple[_Found, str]]:
        """Return the earliest start with the most storage, if that is more than the minimum."""
        grown = self._with_storage(earliest)
        return [(grown, "largest")] if grown.storage and grown.storage != self.terms.storage else []

    def _in_each_window(self, earliest: _Found) -> list[tuple[_Found, str]]:
        """Return one start in each requested window that has none yet, if several were requested."""
        request, terms = self.terms.request, self.terms
        if len(request.windows) < 2:
            return []
        choices: list[tuple[_Found, str]] = []
        starts = [earliest.start]
        for opening in self._open(list_named_windows(request, terms.now, terms.horizon)):
            if any(opening.start <= start <= opening.last for start in starts):
                continue
            if other := self._at_a_named_time(opening, len(earliest.nodes)):
                choices.append((other, self._in_words(other.start)))
                starts.append(other.start)
        return choices

    def _in_words(self, start: datetime) -> str:
        recurring = self.terms.request.recurring
        zone = zone_of(recurring[0].zone if recurring else "UTC")
        return f"{time_in_words(start.astimezone(zone))}, {zone.key}"

    def _spread(self, openings: Sequence[Opening], known: Sequence[_Found], room: int) -> list[tuple[_Found, str]]:
        """Return other sensible start times: some in each of the next windows, whole steps apart."""
        choices: list[tuple[_Found, str]] = []
        earliest, starts = known[0], {each.start for each in known}
        if room <= 0:
            return choices
        usable = [opening for opening in openings if opening.last > earliest.start]
        each = -(-(room + 1) // max(1, min(len(usable), (room + 1) // 2)))
        tries = 3 * room
        for part in (part for opening in usable for part in parts(opening, each)):
            if len(choices) >= room or tries <= 0:
                break
            if part.last < earliest.start or any(part.start <= start < part.end for start in starts):
                continue
            tries -= 1
            other = self._at_a_named_time(part, len(earliest.nodes))
            if other and other.start not in starts:
                choices.append((other, self._in_words(other.start)))
                starts.add(other.start)
        return choices

    def _at_a_named_time(self, part: Opening, nodes: int) -> _Found | None:
        """Find the first start in an opening, or the next quarter of an hour if that is free too."""
        first = self._first(self.terms.least, nodes, [part])
        if first is None or first.start == part.start:
            return first
        quarter = find_named_time(first.start, QUARTER)
        if first.start == quarter - QUARTER or quarter >= part.end:
            return first
        return self._first(self.terms.least, nodes, [Opening(quarter, quarter, part.last)]) or first

    def _larger(self, earliest: _Found, openings: Sequence[Opening]) -> list[tuple[_Found, str]]:
        """Return the largest choices up to the maxima: at the earliest start and, if later is larger, at any time."""
        compute = self.terms.request.compute
        ranges = (compute.nodes, compute.cores, compute.memory, compute.gpus, compute.disk)
        if all(bounds.max == bounds.min for bounds in ranges):
            return []
        duration = self.terms.request.duration
        length = duration + (earliest.latest - earliest.start)
        then = [Window(earliest.start, earliest.start)]
        least = (earliest.shape, len(earliest.nodes))
        asked = self.terms.affordable(compute.most, compute.nodes.max)
        if asked == least:
            return []
        if slot := self._slot(*asked, length, then):  # usually all of it is free, and no node need be checked
            return [(_Found(asked[0], slot.nodes, slot.start, earliest.latest, slot.pools), "largest")]
        whole = self._most(self.terms.calendar.nodes, self.terms.pledged)
        until = earliest.latest + duration
        free = self.terms.calendar.free(earliest.start, until)
        room = self.terms.calendar.room(pool_of(self.terms.pledge), earliest.start, until)
        there = self._most([Node(name, s.cores, s.memory, s.gpus, s.disk) for name, s in free.items()], room)
        choices = []
        if there != least and (slot := self._slot(*there, length, then)):
            why = "largest" if there == whole else "largest at that time"
            choices.append((_Found(there[0], slot.nodes, slot.start, earliest.latest, slot.pools), why))
        if whole not in (there, least):
            other = self._first(*whole, openings)
            if other:
                choices.append((other, "largest"))
        return choices

    def _most(self, nodes: Sequence[Node], pledged: Shape) -> tuple[Shape, int]:
        """Return the largest shape and node count that these nodes, the pledges and the cost limits allow."""
        compute = self.terms.request.compute
        return self.terms.affordable(*most_within(*most_on(nodes, compute), pledged, compute))

    def _cheapest(self, choices: Sequence[_Found]) -> _Found | None:
        """Return the first choice that costs least, or None if all cost the same."""
        bills = [self.terms.bill(each.shape, len(each.nodes), each.storage, each.start) for each in choices]
        prices = [bill.total[0].max for bill in bills]
        return choices[prices.index(min(prices))] if min(prices) < max(prices) else None

    def _no_time(self, shape: Shape, nodes: int) -> Reason:
        """Return why nothing can start in the requested time, and when the next start would be."""
        terms, request = self.terms, self.terms.request
        kind, why, limit = self._why_not()
        # At least a minute from now, so that the reader can still ask for it.
        window = Window(self.soonest + MINUTE, terms.now + terms.horizon)
        slot = self._slot(shape, nodes, request.duration, [window])
        nearest = instant(slot.start) if slot else ""
        if slot:
            why += f"; the next free time is {nearest} (in {roughly(slot.start - terms.now)})"
        return Reason(kind, START, f"{why}.", describe_asked_times(request), limit, nearest, terms.platform)

    def _why_not(self) -> tuple[str, str, str]:
        """Return the kind of reason, the sentence without its full stop, and the limit if there is one."""
        terms, request = self.terms, self.terms.request
        length, ahead = describe_duration(request.duration), describe_duration(terms.horizon)
        if not (request.windows or request.recurring):
            return LIMIT, f"{terms.where} has nothing free for {length} within {ahead}", ahead
        if not windows_of(request, terms.now, terms.horizon):
            if any(window.start >= terms.now + terms.horizon for window in request.windows):
                return LIMIT, f"{terms.platform} takes bookings that start within {ahead}", ahead
            return "urn:invalid-value", f"The time asked for is over: it is {instant(terms.now)}", instant(terms.now)
        if not self._openings(terms.horizon):
            first = request.not_before
            if first and self.soonest == next_second(first):
                return (
                    LIMIT,
                    f"The sessions that it depends on are planned to end at {instant(first)}: too late",
                    instant(first),
                )
            ready = describe_duration(self.prepare)
            why = f"{terms.platform} can be ready at {instant(self.soonest)}, after {ready} of preparing: too late"
            return LIMIT, why, instant(self.soonest)
        return LIMIT, f"{terms.where} has nothing free for {length} that starts in the time asked for", ""
