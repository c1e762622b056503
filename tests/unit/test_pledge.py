"""Pledges: who may draw on several has whatever is left of any, and nobody is ever promised what others have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.holds import hold_of, takes_of
from sublet.booking.model.offer import Answer, Node, Offer, Take
from sublet.booking.model.offers import WayFacts, find_offers
from sublet.booking.model.pledge import (
    OPEN,
    describe_why,
    find_drawn,
    list_sets,
    offers_within,
    pledge_text,
    pool_of,
    shares,
    sizes_in,
)
from sublet.booking.model.pledged import Pledged, capacity_of, pools_of_all
from sublet.booking.model.prices import Prices
from sublet.booking.model.request import GIB, Compute, Executable, Range, Request, Window
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import NoRoom, NotBookable
from tests.examples import examples

NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
Draw = tuple[int, frozenset[str]]  # so many cores, of any of these

NAMES = ("a", "b", "c", OPEN)
sizes_ = st.lists(st.integers(0, 6), min_size=2, max_size=4).map(
    lambda given: dict(zip((*NAMES[: len(given) - 1], OPEN), given, strict=True))
)


@st.composite
def draws(draw: st.DrawFn) -> tuple[dict[str, int], list[Draw]]:
    sizes = draw(sizes_)
    some = st.sets(st.sampled_from(sorted(sizes)), min_size=1).map(frozenset)
    return sizes, draw(st.lists(st.tuples(st.integers(0, 5), some), max_size=6))


def pools_of(pledges: Mapping[str, int], cores: int) -> dict[str, int]:
    return pools_of_all({name: Pledged(size) for name, size in pledges.items()}, {"cores": cores})


def can_be_placed(sizes: dict[str, int], wanted: Sequence[Draw]) -> bool:
    """By trying: each core of each is put in one of its pledges, and others are moved to make room (a flow)."""
    inside: dict[str, list[frozenset[str]]] = {name: [] for name in sizes}

    def put(own: frozenset[str], seen: set[str]) -> bool:
        for name in sorted(own - seen):
            seen.add(name)
            if len(inside[name]) < sizes[name]:
                inside[name].append(own)
                return True
            for place, other in enumerate(inside[name]):
                if put(other, seen):
                    inside[name][place] = own
                    return True
        return False

    return all(put(own, set()) for cores, own in wanted for _ in range(cores))


@given(draws())
def test_what_is_within_every_bound_can_be_placed_and_nothing_else(made: tuple[dict[str, int], list[Draw]]) -> None:
    sizes, wanted = made
    total = sum(cores for cores, _ in wanted) <= sum(sizes.values())
    bounds = {some: capacity_of(some, sizes, frozenset()) for some in list_sets(sizes)}
    within = all(sum(cores for cores, own in wanted if own <= some) <= most for some, most in bounds.items())
    assert (within and total) == can_be_placed(sizes, wanted)


@st.composite
def lives(draw: st.DrawFn) -> tuple[dict[str, int], list[tuple[str, Any]]]:
    sizes = draw(sizes_)
    some = st.sets(st.sampled_from(sorted(sizes)), min_size=1)
    one = st.tuples(st.integers(1, 5), some, st.integers(0, 9), st.integers(1, 5))
    step = st.one_of(
        st.tuples(st.just("book"), one),
        st.tuples(st.just("book"), one),
        st.tuples(st.just("hold"), st.lists(one, min_size=2, max_size=3)),
        st.tuples(st.just("extend"), st.tuples(st.integers(0, 99), st.integers(-2, 4))),
        st.tuples(st.just("release"), st.integers(0, 99)),
    )
    return sizes, draw(st.lists(step, max_size=14))


def offered(cores: int, names: set[str], start: int, length: int) -> Offer:
    at = NOW + start * HOUR
    return Offer("here", "sh", at, at, length * HOUR, ("n",), Shape(cores, 1), pledge=dict.fromkeys(names, 1))


class Life:
    """A calendar, and what it was told to keep."""

    def __init__(self, sizes: dict[str, int]) -> None:
        pools = {pool_of([name]): size for name, size in sizes.items()}
        self.sizes, self.booked = sizes, dict[str, list[Offer]]()
        self.calendar = Calendar([Node("n", sum(sizes.values()), 1000)], pools)

    def go(self, key: str, what: str, value: Any) -> None:
        keys = sorted(self.booked)
        if what in ("book", "hold"):
            self.hold(key, [offered(*one) for one in ([value] if what == "book" else value)])
        elif keys and what == "release":
            self.calendar.release(keys[value % len(keys)])
            del self.booked[keys[value % len(keys)]]
        elif keys:
            self.extend(keys[value[0] % len(keys)], value[1] * HOUR)

    def hold(self, key: str, offers: list[Offer]) -> None:
        fits = self.calendar.fits(hold_of(offers))
        try:
            self.calendar.take(key, hold_of(offers))
        except NotBookable:
            assert not fits
        else:
            assert fits
            self.booked[key] = offers

    def extend(self, key: str, by: timedelta) -> None:
        one, *others = self.booked[key]
        longer = max(one.duration + by, HOUR)
        if others:
            return
        try:
            self.calendar.extend(key, one.start + longer)
        except NoRoom:
            return
        self.booked[key] = [replace(one, duration=longer)]

    def can_be_placed(self) -> bool:
        for hour in range(20):
            at = NOW + hour * HOUR + MINUTE
            there = [[one for one in offers if one.start <= at < one.end] for offers in self.booked.values()]
            for worst in (min, max):
                chosen = [worst(some, key=lambda one: one.shape.cores) for some in there if some]
                if not can_be_placed(self.sizes, [(one.shape.cores, frozenset(one.pledge)) for one in chosen]):
                    return False
        return True


@examples(60)
@given(lives())
def test_at_every_moment_all_that_is_booked_and_one_of_each_hold_can_be_placed(
    made: tuple[dict[str, int], list[tuple[str, Any]]],
) -> None:
    life = Life(made[0])
    for number, (what, value) in enumerate(made[1]):
        life.go(str(number), what, value)
    assert life.can_be_placed()
    for key in life.booked:
        life.calendar.release(key)
    assert not any(life.calendar.busy(NOW, NOW + 100 * HOUR).values()), "what was given back is free"


@examples(60)
@given(lives(), st.integers(1, 6), st.data())
def test_the_earliest_start_of_a_pledge_is_free_and_none_is_earlier(
    made: tuple[dict[str, int], list[tuple[str, Any]]], cores: int, data: st.DataObject
) -> None:
    sizes, life = made[0], Life(made[0])
    for number, (what, value) in enumerate(made[1]):
        life.go(str(number), what, value)
    calendar = life.calendar
    names = data.draw(st.sets(st.sampled_from(sorted(sizes)), min_size=1))
    windows = [Window(NOW, NOW + 30 * HOUR)]
    slot = calendar.earliest(Shape(cores, 1), 1, 2 * HOUR, windows, pledge=pool_of(names))
    free = [hour for hour in range(30) if calendar.fits(takes_of(offered(cores, names, hour, 2)))]
    assert (slot.start if slot else None) == (NOW + free[0] * HOUR if free else None)
    if slot:
        assert calendar.room(pool_of(names), slot.start, slot.start + 2 * HOUR).cores >= cores


def test_a_pledge_that_is_no_more_has_become_open_and_one_that_is_new_knows_what_was_booked() -> None:
    nodes = [Node("n", 10, 1000)]
    booking = takes_of(offered(4, {"old"}, 0, 1))
    after = Calendar(nodes, pools_of({"new": 5}, 10))
    after.put("before", booking)
    assert not after.fits(takes_of(offered(2, {OPEN}, 0, 1)))
    assert after.fits(takes_of(offered(1, {OPEN}, 0, 1)))
    assert after.fits(takes_of(offered(5, {"new"}, 0, 1)))
    without = Calendar(nodes)
    without.take("before", booking)
    assert without.fits(takes_of(offered(6, {"old"}, 0, 1)))
    assert not without.fits(takes_of(offered(7, set(), 0, 1)))


def test_a_session_counts_in_each_of_its_pledges_by_their_sizes() -> None:
    sizes = sizes_in(pools_of({"srcnet": 600}, 1000))
    assert sizes == {"srcnet": 600, OPEN: 400}
    assert shares({"srcnet": 600}) == {"srcnet": Fraction(1)}
    assert shares(sizes) == {"srcnet": Fraction(3, 5), OPEN: Fraction(2, 5)}
    assert find_drawn({pool_of(["srcnet", OPEN]): 100, pool_of([OPEN]): 7}, sizes) == {"srcnet": 60, OPEN: 47}
    assert pledge_text([OPEN, "srcnet", "a"]) == "a + srcnet + open"
    assert pools_of({}, 1000) == {}
    assert sizes_in(pools_of({"srcnet": 600}, 500))[OPEN] == 0


# A site with a thousand cores, five hundred of them pledged to SRCNet

SITE = [Node(f"n{number:02}", 50, 100 * GIB) for number in range(20)]
SRCNET = {"srcnet": 500}
LOCAL = ("srcnet", OPEN)


def site() -> Calendar:
    return Calendar(SITE, pools_of(SRCNET, 1000))


def ask(calendar: Calendar, names: Sequence[str], cores: int, *, most: int = 0, **parts: Any) -> Answer:
    """So many cores, on nodes of fifty."""
    nodes = Range(-(-cores // 50), -(-max(cores, most) // 50))
    each = min(cores, 50)
    compute = Compute(nodes=nodes, cores=Range(each, each), memory=Range(GIB, GIB))
    request = replace(Request(Executable("command"), compute, duration=HOUR), **parts)

    def look(some: Mapping[str, int]) -> Answer:
        return find_offers(
            request,
            calendar,
            platform="site",
            ways=[WayFacts("sh")],
            pools=(),
            prices=Prices(),
            metrics=(),
            now=NOW,
            hold=5 * MINUTE,
            release=timedelta(0),
            prepare=timedelta(0),
            pledge=some,
        )

    return offers_within(names, sizes_in(calendar.pools), cores, 6, look)


def book(calendar: Calendar, key: str, names: Sequence[str], cores: int) -> Offer:
    offer = ask(calendar, names, cores).offers[0]
    calendar.take(key, takes_of(offer))
    return offer


def test_a_local_user_has_all_thousand_at_once_and_one_of_srcnet_never_more_than_five_hundred() -> None:
    calendar = site()
    assert not ask(calendar, ["srcnet"], 550).offers
    [reason] = ask(calendar, ["srcnet"], 550).reasons
    assert (reason.limit, "site (srcnet) has 500 cores in all" in reason.message) == ("500", True)
    whole = book(calendar, "local", LOCAL, 1000)
    assert whole.pledge == {"srcnet": 500, OPEN: 500}
    assert ask(calendar, ["srcnet"], 50).offers[0].start >= whole.end
    calendar.release("local")
    for number in range(10):
        assert book(calendar, f"srcnet-{number}", ["srcnet"], 50).start == NOW
    full = ask(calendar, ["srcnet"], 50, windows=(Window(NOW, NOW + 10 * MINUTE),))
    assert full.reasons[0].nearest.startswith("2026-11-16T09:0"), "full until the first of them ends"
    assert book(calendar, "other", [OPEN], 500).start == NOW


def test_what_is_open_is_taken_before_what_is_pledged_and_leaves_it_alone() -> None:
    calendar = site()
    assert book(calendar, "local", LOCAL, 400).pledge == {OPEN: 500}
    assert book(calendar, "guest", ["srcnet"], 500).start == NOW
    assert book(calendar, "rest", LOCAL, 100).pledge == {OPEN: 500}
    assert not [offer for offer in ask(calendar, LOCAL, 50).offers if offer.start < NOW + HOUR]


def test_an_offer_across_several_is_made_where_none_could_hold_it_or_where_it_starts_earlier() -> None:
    calendar = site()
    assert {tuple(offer.pledge) for offer in ask(calendar, LOCAL, 600).offers} == {("srcnet", OPEN)}
    book(calendar, "one", [OPEN], 300)
    book(calendar, "two", ["srcnet"], 300)
    found = ask(calendar, LOCAL, 400).offers
    assert [(tuple(offer.pledge), offer.start > NOW) for offer in found] == [(("srcnet", OPEN), False), ((OPEN,), True)]
    assert [describe_why(offer) for offer in found] == ["earliest, across srcnet + open", "earliest, of open alone"]
    calendar.take("held", hold_of(found))
    assert calendar.fits(hold_of(ask(calendar, ["srcnet"], 50).offers))


@pytest.mark.parametrize(("names", "most"), [(["srcnet"], 500), (LOCAL, 500), ([OPEN], 300)])
def test_the_largest_is_what_one_pledge_has(names: Sequence[str], most: int) -> None:
    calendar = site()
    if most == 300:
        book(calendar, "some", [OPEN], 200)
    found = ask(calendar, names, 50, most=1000).offers
    assert max(len(offer.nodes) * 50 for offer in found if offer.start == NOW) == most
    assert all(calendar.fits(takes_of(offer)) for offer in found)


def test_takes_of_a_pledge_last_as_long_as_the_nodes_do() -> None:
    offer = replace(offered(4, {"srcnet"}, 1, 2), prepare=HOUR, storage={"d": 5}, pools={"d": "disk"})
    by_pool = {take.where: take for take in takes_of(offer) if take.pool}
    assert by_pool["pledge:srcnet"] == Take("pledge:srcnet", offer.start, offer.end, memory=1, size=4, pool=True)
    assert by_pool["disk"].start == offer.start - HOUR
