"""Which offer is the better one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.ranking import PREFERENCES, Preference, Rated, explain_choice, rank, sort_offers

NOW = datetime(2026, 11, 16, 15, tzinfo=UTC)
MINUTES = st.integers(0, 300).map(lambda count: NOW + timedelta(minutes=count))
OFFERS = st.builds(
    Rated,
    platform=st.sampled_from(["here", "mine", "theirs"]),
    start=MINUTES,
    terms=st.sampled_from(["booked", "predicted", "remote"]),
    p90=st.none() | MINUTES,
    price=st.sampled_from([0.0, 1.0, 2.5]),
    cores=st.integers(1, 3),
    memory=st.integers(1, 3),
    is_here=st.booleans(),
    needs_login=st.booleans(),
    detail=st.sampled_from(["a", "b"]),
)
HERE = Rated("here", NOW, "booked", is_here=True)


def predicted(platform: str = "mine", start: int = 0, p90: int = 60, **more: object) -> Rated:
    times = {"start": NOW + timedelta(minutes=start), "p90": NOW + timedelta(minutes=p90)}
    return Rated(platform, terms="predicted", **times, **more)  # type: ignore[arg-type]


def booked(platform: str, minutes: float, **more: object) -> Rated:
    return Rated(platform, NOW + timedelta(minutes=minutes), "booked", **more)  # type: ignore[arg-type]


def names(offers: list[Rated], prefer: Preference = "soonest") -> list[str]:
    return [one.platform for one in sort_offers(offers, lambda one: one, prefer)]


def test_booked_now_comes_before_predicted_now_whatever_else_is_equal() -> None:
    for price in (0.0, 5.0):
        assert names([predicted(), Rated("here", NOW, "booked", price=price)]) == ["here", "mine"]


@pytest.mark.parametrize(("minutes", "first"), [(0.5, "here"), (1, "here"), (30, "here"), (60, "here"), (62, "mine")])
def test_booked_wins_within_a_minute_or_the_spread_of_the_prediction(minutes: float, first: str) -> None:
    assert names([predicted(p90=60), booked("here", minutes)])[0] == first


def test_a_queue_with_a_record_of_exact_plans_wins_when_it_is_clearly_sooner() -> None:
    assert names([booked("here", 10), predicted(p90=2)]) == ["mine", "here"]
    assert names([booked("here", 1), predicted(p90=0)]) == ["here", "mine"]


def test_what_needs_a_login_comes_last_for_every_preference() -> None:
    waiting = predicted(needs_login=True)
    for prefer in PREFERENCES:
        assert names([waiting, booked("here", 600, price=99.0)], prefer)[-1] == "mine"


def test_this_machine_first_or_the_cheapest_first_if_that_is_preferred() -> None:
    far = booked("far", 0, price=1.0)
    here = booked("here", 90, price=2.0, is_here=True)
    assert names([far, here]) == ["far", "here"]
    assert names([far, here], "here") == ["here", "far"]
    assert names([booked("dear", 0, price=3.0), here, far], "cheapest") == ["far", "here", "dear"]


@given(st.lists(OFFERS, max_size=8), st.randoms(), st.sampled_from(PREFERENCES))
def test_the_order_does_not_depend_on_the_order_in_which_they_came(
    offers: list[Rated], random: object, prefer: Preference
) -> None:
    shuffled = list(offers)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    once = sort_offers(offers, lambda one: one, prefer)
    assert [rank(one, prefer) for one in once] == [
        rank(one, prefer) for one in sort_offers(shuffled, lambda one: one, prefer)
    ]
    assert sort_offers(once, lambda one: one, prefer) == once


@given(OFFERS, OFFERS, st.sampled_from(PREFERENCES))
def test_of_two_offers_one_is_better_unless_nothing_tells_them_apart(
    one: Rated, other: Rated, prefer: Preference
) -> None:
    first, second = rank(one, prefer), rank(other, prefer)
    assert (first < second) + (first > second) + (first == second) == 1


@given(OFFERS, OFFERS, st.sampled_from(PREFERENCES))
def test_no_prediction_is_before_a_booking_of_the_same_start(one: Rated, other: Rated, prefer: Preference) -> None:
    same = (one.needs_login, one.is_here, one.price) == (other.needs_login, other.is_here, other.price)
    if same and one.terms == "booked" and other.terms == "predicted" and one.start <= other.start:
        assert rank(one, prefer) < rank(other, prefer)


def test_the_reason_names_each_other_platform_and_what_is_worse_there() -> None:
    others = [HERE, predicted(), booked("far", 30), predicted("shut", needs_login=True)]
    said = explain_choice(HERE, others)
    assert said == "booked; preferred over far: later, mine: predicted, shut: login needed"
    assert explain_choice(booked("a", 0), [booked("a", 0), booked("b", 0)]) == "booked; preferred over b: equally good"


def test_the_reason_tells_the_preference() -> None:
    here, far = booked("here", 90, is_here=True, price=2.0), booked("far", 0, price=3.0)
    assert explain_choice(here, [here, far], "here") == "booked; preferred over far: not this machine"
    assert explain_choice(here, [here, far], "cheapest") == "booked; preferred over far: costs more"


def test_without_another_platform_there_is_nothing_to_explain() -> None:
    assert explain_choice(HERE, [HERE, booked("here", 60, is_here=True)]) == ""
