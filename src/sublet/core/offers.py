"""From a request and a calendar to offers that can be taken, or to the reasons why there is none.

All offers of a set have the least that was asked for, at different times, except those that say `largest`. An offer
that starts sooner than it could be taken slides: it may begin as late as `latest_start`, and is held for all that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sublet.core.amounts import duration_text
from sublet.core.calendar import Calendar, Slot
from sublet.core.holds import expiry_of, hold_of, takes_of
from sublet.core.limits import LIMIT, check_costs, check_limits, has, storage_of
from sublet.core.offer import Answer, Node, Offer, Quote, Reason, Shape
from sublet.core.prices import Prices
from sublet.core.request import Request, Window
from sublet.core.windows import SECOND, last_start, windows_of, zone_of

__all__ = ["WayFacts", "expiry_of", "find_offers", "hold_of", "takes_of"]

START = "schedule.requested.start"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
YEAR = timedelta(days=366)
LEAST_HOLD = timedelta(seconds=30)  # a shorter time nobody can read an offer and take it in
SOON = 28 * DAY  # recurring windows are first looked at so far ahead
SPREAD = 7 * DAY  # start times are spread over so much of a long window
STEPS = tuple(m * MINUTE for m in (15, 30, 60, 120, 180, 240, 360, 720, 1440, 2880))


@dataclass(frozen=True, slots=True)
class WayFacts:
    """What offers need to know of a way to run something: its name, and how long it takes to get ready."""

    name: str
    prepare: timedelta = timedelta(0)


def find_offers(
    request: Request,
    calendar: Calendar,
    *,
    platform: str,
    ways: Sequence[WayFacts],
    pool: str,
    prices: Prices,
    metrics: tuple[Quote, ...],
    now: datetime,
    hold: timedelta,
    release: timedelta,
    prepare: timedelta,
    horizon: timedelta = YEAR,
    longest: timedelta | None = None,
    at_most: int = 6,
) -> Answer:
    """The useful offers of one platform, at most so many, the earliest first; or every reason against it."""
    reasons = check_limits(request, calendar, platform=platform, pool=pool, metrics=metrics, longest=longest)
    if request.executable is None:
        reasons.append(Reason("urn:executable-required", "executable", "Description of the executable is required."))
    elif not ways:
        message = f"{platform} has no way to run a {request.executable.kind}."
        reasons.append(Reason("urn:not-supported", "executable.kind", message, request.executable.kind))
    storage = storage_of(request) if request.storage or request.data else {}
    terms = _Terms(request, calendar, platform, pool, storage, prices, metrics, now, hold, release, horizon, at_most)
    reasons += check_costs(request.costs, terms.quote(terms.least, request.compute.nodes.min), platform)
    if reasons:
        return Answer(reasons=tuple(replace(reason, platform=platform) for reason in reasons))
    first: Answer | None = None
    for way in ways:
        if first is None or way.prepare < ways[0].prepare:  # another way helps only if it gets ready sooner
            answer = _Search(terms, way.name, _whole(prepare + way.prepare)).answer()
            if answer.offers:
                return answer
            first = first or answer
    return first or Answer()


def _whole(length: timedelta) -> timedelta:
    """The same in whole seconds, not less."""
    return -(-length // SECOND) * SECOND


def _whole_second(time: datetime) -> datetime:
    return time.replace(microsecond=0) + SECOND if time.microsecond else time


@dataclass(frozen=True, slots=True)
class _Terms:
    """What holds for every offer to one request on one platform."""

    request: Request
    calendar: Calendar
    platform: str
    pool: str
    storage: dict[str, int]
    prices: Prices
    metrics: tuple[Quote, ...]
    now: datetime
    hold: timedelta
    release: timedelta
    horizon: timedelta
    at_most: int

    @property
    def least(self) -> Shape:
        """What each node must have."""
        compute = self.request.compute
        return Shape(compute.cores.min, compute.memory.min, compute.gpus.min)

    def quote(self, shape: Shape, nodes: int) -> tuple[Quote, ...]:
        """What it costs."""
        return self.prices.quote(shape, nodes, self.request.duration, sum(self.storage.values()))


@dataclass(frozen=True, slots=True)
class _Opening:
    """A window, or a part of one, and the last moment at which an offer that starts in it may begin."""

    start: datetime
    end: datetime
    last: datetime


@dataclass(slots=True)
class _Search:
    """One search through a calendar, for one way of running the executable."""

    terms: _Terms
    way: str
    prepare: timedelta
    soonest: datetime = field(init=False)  # nothing can be ready before
    settled: datetime = field(init=False)  # what starts from here on needn't slide
    _storage: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.soonest = _whole_second(self.terms.now) + self.prepare
        self.settled = self.soonest + _whole(self.terms.hold)
        total = sum(self.terms.storage.values())
        self._storage = {self.terms.pool: total} if total else {}

    def answer(self) -> Answer:
        """Offers inside the asked windows, or the reason why there are none."""
        request = self.terms.request
        least, nodes = self.terms.least, request.compute.nodes.min
        spans = (SOON, self.terms.horizon) if request.recurring else (self.terms.horizon,)
        for span in spans:
            openings = self._openings(min(span, self.terms.horizon))
            earliest = self._first(least, nodes, openings)
            if earliest:
                break
        else:
            return Answer(reasons=(self._no_time(least, nodes),))
        found = [replace(earliest, why="earliest")]
        larger = self._larger(earliest, openings)[: self.terms.at_most - 1]
        room = self.terms.at_most - len(larger)
        if request.windows or request.recurring:
            found += self._spread(openings, earliest, room - 1)
        return Answer(tuple(sorted(_cheapest(found + larger), key=lambda offer: offer.start)))

    def _openings(self, span: timedelta) -> list[_Opening]:
        """The asked windows as far as they can still be met, in order."""
        terms = self.terms
        until = terms.now + terms.horizon
        if not (terms.request.windows or terms.request.recurring):
            return [_Opening(self.soonest, until, until)]
        found = []
        for window in windows_of(terms.request, terms.now, span):
            start, last = max(window.start, self.soonest), last_start(window)
            if start <= last and last - self.prepare > terms.now and start < until:
                found.append(_Opening(start, max(min(window.end, until), start), min(last, max(until, start))))
        return found

    def _first(self, shape: Shape, nodes: int, openings: Sequence[_Opening]) -> Offer | None:
        """The earliest offer of so many nodes of a shape."""
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
        return self._offer(shape, slot, slot.start) if slot else None

    def _sliding(self, shape: Shape, nodes: int, opening: _Opening) -> Offer | None:
        """An offer that starts before it is sure to have been taken, and therefore may begin later."""
        duration = self.terms.request.duration
        window = Window(opening.start, min(opening.end, self.settled))
        latest = min(self.settled, opening.last)
        slot = self._slot(shape, nodes, duration + (latest - opening.start), [window])
        if slot:
            return self._offer(shape, slot, max(latest, slot.start))
        slide = min(LEAST_HOLD, self.terms.hold, latest - opening.start)
        slot = self._slot(shape, nodes, duration + slide, [window])
        return self._as_late_as_possible(shape, slot, slot.start + slide, latest) if slot else None

    def _as_late_as_possible(self, shape: Shape, slot: Slot, least: datetime, most: datetime) -> Offer:
        """The same nodes, with the latest start that the next booking on them leaves."""
        good, low, high = self._offer(shape, slot, least), 0, (most - least) // SECOND
        while low < high:
            middle = (low + high + 1) // 2
            offer = self._offer(shape, slot, least + middle * SECOND)
            if self.terms.calendar.fits(hold_of([offer])):
                good, low = offer, middle
            else:
                high = middle - 1
        return good

    def _slot(self, shape: Shape, nodes: int, length: timedelta, windows: Sequence[Window]) -> Slot | None:
        return self.terms.calendar.earliest(
            shape, nodes, length, windows, storage=self._storage, lead=self.prepare, tail=self.terms.release
        )

    def _offer(self, shape: Shape, slot: Slot, latest: datetime) -> Offer:
        terms = self.terms
        return Offer(
            platform=terms.platform,
            way=self.way,
            start=slot.start,
            latest_start=latest,
            duration=terms.request.duration,
            nodes=slot.nodes,
            shape=shape,
            prepare=self.prepare,
            release=terms.release,
            storage=terms.storage,
            pool=terms.pool if terms.storage else "",
            costs=terms.quote(shape, len(slot.nodes)),
            metrics=terms.metrics,
        )

    def _spread(self, openings: Sequence[_Opening], earliest: Offer, room: int) -> list[Offer]:
        """Other sensible start times: some in each of the next windows, whole steps apart."""
        found: list[Offer] = []
        starts = {earliest.start}
        usable = [opening for opening in openings if opening.last > earliest.start]
        each = -(-(room + 1) // max(1, min(len(usable), (room + 1) // 2)))
        zone = zone_of(self.terms.request.recurring[0].zone if self.terms.request.recurring else "UTC")
        tries = 3 * room
        for opening in usable:
            for part in _parts(opening, each):
                if len(found) >= room or tries <= 0:
                    return found
                if part.end <= earliest.start or any(part.start <= start < part.end for start in starts):
                    continue
                tries -= 1
                offer = self._at_a_named_time(part, len(earliest.nodes))
                if offer and offer.start not in starts:
                    local = offer.start.astimezone(zone)
                    why = f"{local:%H:%M} on {local:%A} {local.day} {local:%B}"
                    found.append(replace(offer, why=f"{why}, {zone.key}"))
                    starts.add(offer.start)
        return found

    def _at_a_named_time(self, part: _Opening, nodes: int) -> Offer | None:
        """The first start in a part, or the quarter of an hour after it, where that is free too."""
        first = self._first(self.terms.least, nodes, [part])
        if first is None or first.start == part.start:
            return first
        quarter = _named_time(first.start, STEPS[0])
        if first.start == quarter - STEPS[0] or quarter >= part.end:
            return first
        return self._first(self.terms.least, nodes, [_Opening(quarter, quarter, part.last)]) or first

    def _larger(self, earliest: Offer, openings: Sequence[_Opening]) -> list[Offer]:
        """The most that can be had up to the maxima: at the earliest start, and whenever that is more, at any."""
        compute = self.terms.request.compute
        ranges = (compute.nodes, compute.cores, compute.memory, compute.gpus)
        if all(bounds.max == bounds.min for bounds in ranges):
            return []
        whole = self._most([node for node in self.terms.calendar.nodes if has(node, compute)])
        free = self.terms.calendar.free(earliest.start, earliest.latest_start + earliest.duration)
        now = self._most([Node(name, s.cores, s.memory, s.gpus) for name, s in free.items()])
        found = []
        at_start = Window(earliest.start, earliest.start)
        slide = earliest.latest_start - earliest.start
        for shape, nodes in dict.fromkeys((now, whole)):
            if (shape, nodes) == (earliest.shape, len(earliest.nodes)) or not self._affordable(shape, nodes):
                continue
            if (shape, nodes) == now:
                slot = self._slot(shape, nodes, earliest.duration + slide, [at_start])
                offer = self._offer(shape, slot, earliest.latest_start) if slot else None
            else:
                offer = self._first(shape, nodes, openings)
            if offer:
                found.append(replace(offer, why="largest" if (shape, nodes) == whole else "largest at that time"))
        return found

    def _most(self, nodes: Sequence[Node]) -> tuple[Shape, int]:
        """The largest shape, on as many nodes as possible, that these nodes have and the maxima allow."""
        compute = self.terms.request.compute
        able = sorted(
            (
                (min(n.cores, compute.cores.max), min(n.memory, compute.memory.max), min(n.gpus, compute.gpus.max))
                for n in nodes
                if has(n, compute)
            ),
            reverse=True,
        )[: compute.nodes.max]
        if len(able) < compute.nodes.min:
            return self.terms.least, compute.nodes.min
        return Shape(*(min(amounts) for amounts in zip(*able, strict=True))), len(able)

    def _affordable(self, shape: Shape, nodes: int) -> bool:
        costs = self.terms.request.costs
        return not costs or not check_costs(costs, self.terms.quote(shape, nodes), self.terms.platform)

    def _no_time(self, shape: Shape, nodes: int) -> Reason:
        """Why there is no start in the time asked for, and when the next would be."""
        terms, request = self.terms, self.terms.request
        kind, why, limit = self._why_not()
        # A minute from now at the least, so that whoever reads it can still ask for it.
        window = Window(self.soonest + MINUTE, terms.now + terms.horizon)
        slot = self._slot(shape, nodes, request.duration, [window])
        nearest = _instant(slot.start) if slot else ""
        if slot:
            why += f"; the next free time is {nearest} (in {_roughly(slot.start - terms.now)})"
        return Reason(kind, START, f"{why}.", _asked(request), limit, nearest, terms.platform)

    def _why_not(self) -> tuple[str, str, str]:
        """The kind of reason, the sentence without its end, and the limit if there is one."""
        terms, request = self.terms, self.terms.request
        length, ahead = duration_text(request.duration), duration_text(terms.horizon)
        if not (request.windows or request.recurring):
            return LIMIT, f"{terms.platform} has nothing free for {length} within {ahead}", ahead
        if not windows_of(request, terms.now, terms.horizon):
            if any(window.start >= terms.now + terms.horizon for window in request.windows):
                return LIMIT, f"{terms.platform} takes bookings that start within {ahead}", ahead
            return "urn:invalid-value", f"The time asked for is over: it is {_instant(terms.now)}", _instant(terms.now)
        if not self._openings(terms.horizon):
            ready = duration_text(self.prepare)
            why = f"{terms.platform} can be ready at {_instant(self.soonest)}, after {ready} of preparing: too late"
            return LIMIT, why, _instant(self.soonest)
        return LIMIT, f"{terms.platform} has nothing free for {length} that starts in the time asked for", ""


def _parts(opening: _Opening, at_most: int) -> Iterator[_Opening]:
    """An opening cut into at most so many parts, each of which begins at a time that people would name."""
    length = min(opening.end - opening.start, SPREAD)
    least = HOUR if length >= 2 * HOUR else STEPS[0]
    if length < 2 * STEPS[0] or at_most < 1:
        return
    step = next((step for step in STEPS if step >= least and -(-length // step) <= at_most), STEPS[-1])
    start, end = opening.start, opening.start + length
    while start < end:
        stop = _named_time(start, step)
        yield _Opening(start, min(stop, opening.end), opening.last)
        start = stop


def _named_time(time: datetime, step: timedelta) -> datetime:
    """The next time after this one that is whole steps on, on a quarter of an hour."""
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    past = (time - midnight) % STEPS[0]
    return time + step - past


def _cheapest(offers: list[Offer]) -> list[Offer]:
    """The same offers; where prices differ, the first that costs least says so."""
    totals = [sum(quote.max for quote in offer.costs[:1]) for offer in offers]
    if not offers or max(totals) == min(totals):
        return offers
    at = totals.index(min(totals))
    return [replace(o, why=f"{o.why}, cheapest") if i == at else o for i, o in enumerate(offers)]


def _asked(request: Request) -> str:
    """The time asked for, in short."""
    times = [f"{_instant(window.start)}/{_instant(window.end)}" for window in request.windows]
    times += [f"{r.begins}-{r.ends} {r.zone}" for r in request.recurring]
    return ", ".join(times[:3]) or "as soon as possible"


def _instant(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat() + "Z"


def _roughly(length: timedelta) -> str:
    """So long in words, without seconds that nobody asked for."""
    unit = MINUTE if length < DAY else HOUR
    return duration_text(max(-(-length // unit), 1) * unit)
