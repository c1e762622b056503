"""Storage goes to whichever pools have room, or to the one that a request names."""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.documents.request import read_request
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.holds import hold_of, takes_of
from sublet.booking.model.offer import Node, Take, sum_pools
from sublet.booking.model.pools import MOST_PLACEMENTS, list_placements
from sublet.booking.model.request import GIB, Range, Request, Storage, Window
from sublet.booking.model.shape import Shape
from sublet.booking.store.older_rows import gather_offer_options, name_pools
from sublet.booking.store.rows import OFFER
from sublet.kernel.errors import NotBookable
from tests.examples import examples
from tests.unit.test_offers import HOUR, NOW, asking, find
from tests.unit.test_offers_refused import the_reason

POOLS = {"disk": 50 * GIB, "fast": 20 * GIB}
NODE = Node("a", 8, 16 * GIB)


def several(*taken: Take) -> Calendar:
    made = Calendar([NODE], POOLS)
    for number, take in enumerate(taken):
        made.take(str(number), [take])
    return made


def room(name: str, least: int, most: int = 0, pool: str = "") -> Storage:
    return Storage(name, Range(least * GIB, max(least, most) * GIB), pool=pool)


def full(pool: str, hours: int = 9) -> Take:
    return Take(pool, NOW - HOUR, NOW + hours * HOUR, size=POOLS[pool], pool=True)


def test_storage_goes_to_the_first_pool_and_to_another_where_that_is_full() -> None:
    request = asking(storage=(room("a", 10),))
    assert find(request, several()).offers[0].pools == {"a": "disk"}
    offer = find(request, several(full("disk"))).offers[0]
    assert (offer.start, offer.pools) == (NOW, {"a": "fast"})
    assert {take.where for take in takes_of(offer) if take.pool} == {"fast"}


def test_storage_that_fits_in_no_one_pool_is_spread_over_several() -> None:
    offer = find(asking(storage=(room("a", 45), room("b", 15))), several()).offers[0]
    assert (offer.start, offer.pools) == (NOW, {"a": "disk", "b": "fast"})
    assert offer.pool_sizes == {"disk": 45 * GIB, "fast": 15 * GIB}


def test_a_pool_that_is_named_is_waited_for() -> None:
    offer = find(asking(storage=(room("a", 10, pool="fast"),)), several(full("fast"))).offers[0]
    assert (offer.start, offer.pools) == (NOW + 9 * HOUR, {"a": "fast"})


def test_as_much_is_offered_as_any_pool_has_free() -> None:
    taken = Take("disk", NOW, NOW + 9 * HOUR, size=44 * GIB, pool=True)
    least, largest = find(asking(storage=(room("a", 5, 99),)), several(taken)).offers
    assert (least.storage["a"], least.pools["a"]) == (5 * GIB, "disk")
    assert (largest.storage["a"], largest.pools["a"], largest.why) == (20 * GIB, "fast", "largest")


@pytest.mark.parametrize(
    ("storage", "field", "nearest", "words"),
    [
        (
            (room("a", 1, pool="tape"),),
            "storage[0].pool",
            "disk, fast",
            "has no storage pool tape; it has: disk, fast.",
        ),
        ((room("a", 30, pool="fast"),), "storage[0].size.min", "20GiB", "has 20GiB of storage in its pool fast;"),
        ((room("a", 60),), "storage[0].size.min", "50GiB", "has 50GiB of storage in its pool disk; 60GiB"),
        ((room("a", 45), room("b", 30)), "storage", "70GiB", "has 70GiB of storage in 2 pools; 75GiB"),
    ],
)
def test_storage_that_no_pool_has_is_a_no_with_the_most_that_there_is(
    storage: tuple[Storage, ...], field: str, nearest: str, words: str
) -> None:
    reason = the_reason(find(asking(storage=storage), several()))
    assert (reason.field, reason.nearest) == (field, nearest)
    assert words in reason.message


def test_a_request_names_a_pool_in_both_forms() -> None:
    short = read_request({"run": ["true"], "storage": {"size": "2GiB-5GiB", "pool": "fast"}}, NOW)
    assert (short.storage[0].pool, short.storage[0].size) == ("fast", Range(2 * GIB, 5 * GIB))
    full_form = {"executable": {"kind": "command"}, "storage": [{"kind": "simple-storage-resource", "pool": "fast"}]}
    assert read_request(full_form, NOW).storage[0].pool == "fast"


def test_offers_of_before_have_all_their_storage_in_one_pool() -> None:
    offer = find(asking(storage=(room("a", 1), room("b", 2)))).offers[0]
    new = json.loads(OFFER.dump_json(offer))
    old = json.dumps({name: value for name, value in new.items() if name != "pools"} | {"pool": "disk"})
    assert OFFER.validate_json(name_pools(gather_offer_options(old))) == offer
    assert name_pools(json.dumps(new)) == json.dumps(new)


sizes = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60).map(lambda n: n * GIB), max_size=4)


@examples(150)
@given(sizes, st.dictionaries(st.sampled_from("abcd"), st.sampled_from(sorted(POOLS))))
def test_placements_hold_all_and_there_is_one_wherever_one_is_possible(
    sizes: dict[str, int], wanted: dict[str, str]
) -> None:
    named = {name: pool for name, pool in wanted.items() if name in sizes}
    found = list_placements(sizes, named, POOLS)
    possible = [
        placing
        for pools in product(POOLS, repeat=len(sizes))
        if (placing := dict(zip(sizes, pools, strict=True))).items() >= named.items()
        and all(size <= POOLS[pool] for pool, size in sum_pools(sizes, placing).items())
    ]
    assert len(possible) <= MOST_PLACEMENTS
    assert sorted(sorted(each.pools.items()) for each in found) == sorted(sorted(each.items()) for each in possible)
    assert all(each.totals == sum_pools(sizes, each.pools) for each in found)


@st.composite
def bookings(draw: st.DrawFn) -> Calendar:
    calendar = Calendar([NODE], POOLS)
    for key in range(draw(st.integers(0, 8))):
        start = NOW + timedelta(minutes=draw(st.integers(-60, 600)))
        end = start + timedelta(minutes=draw(st.integers(1, 300)))
        pool = draw(st.sampled_from(sorted(POOLS)))
        try:
            calendar.take(str(key), [Take(pool, start, end, size=draw(st.integers(1, 50)) * GIB, pool=True)])
        except NotBookable:
            continue
    return calendar


rooms = st.lists(
    st.builds(
        room,
        st.just(""),
        st.integers(0, 30),
        st.integers(0, 60),
        st.sampled_from(["", "", "disk", "fast"]),
    ),
    min_size=1,
    max_size=3,
).map(lambda rooms: tuple(replace(each, name=f"s{number}") for number, each in enumerate(rooms)))


@examples(150)
@given(rooms, bookings())
def test_the_earliest_offer_is_as_early_as_any_choice_of_pools_allows(
    storage: tuple[Storage, ...], calendar: Calendar
) -> None:
    request: Request = asking(storage=storage)
    offers = find(request, calendar, pools=tuple(POOLS), release=timedelta(0)).offers
    least = {each.name: each.size.min for each in storage}
    starts = []
    for pools in product(POOLS, repeat=len(storage)):
        placing = dict(zip(least, pools, strict=True))
        if all(each.pool in ("", placing[each.name]) for each in storage):
            window = [Window(NOW, NOW + timedelta(days=30))]
            totals = sum_pools(least, placing)
            slot = calendar.earliest(Shape(1, GIB), 1, request.duration, window, storage=totals)
            starts += [slot.start] if slot else []
    assert bool(offers) == bool(starts)
    if offers:
        assert offers[0].start == min(starts)
    for offer in offers:
        assert calendar.fits(hold_of([offer]))
        for each in storage:
            assert each.size.min <= offer.storage[each.name] <= each.size.max
            assert each.pool in ("", offer.pools[each.name])
