"""What is true of every answer, whatever is asked and whatever is booked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.holds import expiry_of, hold_of, takes_of
from sublet.booking.model.offer import Answer, Node, Offer, Take
from sublet.booking.model.offers import WayFacts, find_offers
from sublet.booking.model.prices import MONETARY, Prices
from sublet.booking.model.request import GIB, Compute, Executable, Limit, Range, Recurring, Request, Storage, Window
from sublet.booking.model.windows import windows_of
from sublet.kernel.errors import NotBookable
from tests.examples import examples

NOW = datetime(2026, 11, 15, 20, 0, 0, 250_000, tzinfo=UTC)
HORIZON = timedelta(days=60)
HOLD = timedelta(minutes=5)
NODES = (Node("a", 8, 16 * GIB, 2), Node("b", 4, 32 * GIB), Node("c", 4, 8 * GIB))
POOL = 50 * GIB

minutes = st.integers(0, 3 * 24 * 60).map(lambda n: timedelta(minutes=n))
seconds = st.integers(1, 2 * 86_400).map(lambda n: timedelta(seconds=n))


def ranges(least: int, most: int, unit: int = 1) -> st.SearchStrategy[Range]:
    pairs = st.tuples(st.integers(least, most), st.integers(least, most))
    return pairs.map(lambda pair: Range(min(pair) * unit, max(pair) * unit))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    start = NOW - timedelta(hours=6) + draw(minutes) + timedelta(milliseconds=draw(st.sampled_from([0, 0, 750, 500])))
    return Window(start, start + draw(st.just(timedelta(0)) | seconds))


recurrings = st.builds(
    Recurring,
    st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    st.sampled_from(["09:00", "22:30"]),
    st.sampled_from(["12:00", "06:00"]),
    st.sampled_from(["Europe/London", "Asia/Kolkata"]),
)
requests = st.builds(
    Request,
    st.just(Executable("command")),
    compute=st.builds(
        Compute,
        nodes=ranges(1, 3),
        cores=ranges(1, 9),
        memory=ranges(1, 33, GIB),
        gpus=st.just(Range(0, 0)) | ranges(0, 2),
    ),
    storage=st.just(()) | st.builds(Storage, st.just("scratch"), ranges(0, 60, GIB)).map(lambda room: (room,)),
    duration=seconds,
    windows=st.lists(windows(), max_size=3).map(tuple),
    recurring=st.just(()) | recurrings.map(lambda recurring: (recurring,)),
    costs=st.just(()) | st.floats(0, 100).map(lambda most: (Limit(MONETARY, max=most),)),
)


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    calendar = Calendar(NODES, {"disk": POOL})
    for key in range(draw(st.integers(0, 12))):
        start = NOW - timedelta(hours=1) + draw(minutes)
        node = draw(st.sampled_from(NODES))
        length = draw(seconds)
        takes = [Take(node.name, start, start + length, draw(st.integers(1, node.cores)), GIB)]
        if draw(st.booleans()):
            takes.append(Take("disk", start, start + length, size=draw(st.integers(0, 50)) * GIB, pool=True))
        try:
            calendar.take(str(key), takes)
        except NotBookable:
            continue
    return calendar


def find(request: Request, calendar: Calendar, prepare: timedelta = timedelta(0)) -> Answer:
    return find_offers(
        request,
        calendar,
        platform="here",
        ways=[WayFacts("sh", timedelta(seconds=20))],
        pools=("disk",),
        prices=Prices(core_hour=0.5, memory_gib_hour=0.01),
        metrics=(),
        now=NOW,
        hold=HOLD,
        release=timedelta(seconds=10),
        prepare=prepare,
        horizon=HORIZON,
    )


def prepares() -> st.SearchStrategy[timedelta]:
    return st.sampled_from([timedelta(0), timedelta(minutes=7), timedelta(seconds=0.5)])


def admits(window: Window, start: datetime) -> bool:
    return start == window.start or window.start <= start < window.end


@examples(150)
@given(requests, calendars(), prepares())
def test_every_offer_is_what_was_asked_for_and_can_be_taken(
    request: Request, calendar: Calendar, prepare: timedelta
) -> None:
    answer = find(request, calendar, prepare)
    asked = windows_of(request, NOW, HORIZON)
    anytime = not (request.windows or request.recurring)
    compute = request.compute
    assert bool(answer.offers) != bool(answer.reasons)
    assert len(answer.offers) <= 6
    for offer in answer.offers:
        for start in (offer.start, offer.latest_start):
            assert anytime or any(admits(window, start) for window in asked)
            assert calendar.fits(takes_of(offer, start))
        assert offer.start >= NOW + offer.prepare
        assert offer.duration == request.duration
        assert compute.nodes.min <= len(set(offer.nodes)) == len(offer.nodes) <= compute.nodes.max
        assert compute.cores.min <= offer.shape.cores <= compute.cores.max
        assert compute.memory.min <= offer.shape.memory <= compute.memory.max
        assert compute.gpus.min <= offer.shape.gpus <= compute.gpus.max
        assert all(room.size.min <= offer.storage[room.name] <= room.size.max for room in request.storage)
        assert all(offer.costs[0].max <= (limit.max or 0) for limit in request.costs)
        assert offer.why


@examples(100)
@given(requests, calendars())
def test_offers_differ_and_the_first_is_the_earliest(request: Request, calendar: Calendar) -> None:
    offers = find(request, calendar).offers
    assert len({(offer.start, offer.shape, len(offer.nodes)) for offer in offers}) == len(offers)
    assert list(offers) == sorted(offers, key=lambda offer: offer.start)
    assert not offers or offers[0].why.startswith("earliest")


@examples(100)
@given(requests, calendars(), prepares())
def test_no_offer_stands_longer_than_it_could_still_be_prepared(
    request: Request, calendar: Calendar, prepare: timedelta
) -> None:
    for offer in find(request, calendar, prepare).offers:
        expires = expiry_of(offer, NOW, HOLD)
        assert NOW < expires <= NOW + HOLD
        assert expires <= offer.latest_start - offer.prepare


@examples(100)
@given(requests, calendars(), st.data())
def test_a_hold_can_be_booked_and_leaves_room_for_whichever_offer_is_taken(
    request: Request, calendar: Calendar, data: st.DataObject
) -> None:
    offers = find(request, calendar).offers
    if not offers:
        return
    calendar.take("hold", hold_of(offers))
    taken = data.draw(st.sampled_from(offers))
    slide = data.draw(st.integers(0, (taken.latest_start - taken.start) // timedelta(seconds=1)))
    calendar.release("hold")
    rivals = Calendar(NODES, {"disk": POOL})
    rivals.take("hold", hold_of(offers))
    start = taken.start + timedelta(seconds=slide)
    for take in takes_of(taken, start):
        assert _held(rivals.takes("hold"), take)
    calendar.take("session", takes_of(taken, start))


def _held(hold: tuple[Take, ...], take: Take) -> bool:
    """Whether the steps of a hold cover the whole of a take."""
    at = take.start
    for step in sorted((s for s in hold if (s.where, s.pool) == (take.where, take.pool)), key=lambda s: s.start):
        enough = step.cores >= take.cores and step.memory >= take.memory
        if step.start <= at < step.end and enough and step.gpus >= take.gpus and step.size >= take.size:
            at = step.end
    return at >= take.end


@examples(100)
@given(requests, calendars())
def test_a_hold_is_never_more_than_the_most_of_its_offers(request: Request, calendar: Calendar) -> None:
    offers = find(request, calendar).offers
    all_takes = [take for offer in offers for take in _longest(offer)]
    for step in hold_of(offers):
        for moment in (step.start, step.end - timedelta(microseconds=1)):
            there = [t for t in all_takes if (t.where, t.pool) == (step.where, step.pool) and t.start <= moment < t.end]
            assert step.cores == max(take.cores for take in there)
            assert step.memory == max(take.memory for take in there)
            assert step.size == max(take.size for take in there)


def _longest(offer: Offer) -> tuple[Take, ...]:
    return takes_of(replace(offer, duration=offer.duration + (offer.latest_start - offer.start)))


@examples(150)
@given(requests, calendars(), prepares())
def test_a_no_names_the_field_and_its_nearest_time_is_a_yes(
    request: Request, calendar: Calendar, prepare: timedelta
) -> None:
    for reason in find(request, calendar, prepare).reasons:
        assert reason.kind.startswith("urn:")
        assert reason.field
        assert reason.message.endswith(".")
        assert reason.platform == "here"
        if reason.field == "schedule.requested.start" and reason.nearest:
            start = datetime.fromisoformat(reason.nearest)
            again = replace(request, windows=(Window(start, start),), recurring=())
            assert find(again, calendar, prepare).offers[0].start == start


@examples(100)
@given(requests, calendars())
def test_finding_offers_books_nothing(request: Request, calendar: Calendar) -> None:
    far = NOW + timedelta(days=30)
    before = calendar.busy(NOW - HORIZON, far)
    find(request, calendar)
    assert calendar.busy(NOW - HORIZON, far) == before
