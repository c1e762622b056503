"""Trying out what would have to give way changes nothing, and never holds more than there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.giving_way import NEW, find_displaced, find_fitting, improves
from sublet.booking.model.holds import hold_of
from sublet.booking.model.offer import Answer, Node, Offer, Take
from sublet.booking.model.shape import Shape

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NODES = [Node("a", 4, 8), Node("b", 4, 8)]


def an_offer(node: str, start: int, hours: int, cores: int) -> Offer:
    """So many cores of a node, from then on."""
    begin = NOON + start * HOUR
    return Offer("here", "sh", begin, begin, hours * HOUR, (node,), Shape(cores, cores))


OFFERS = st.builds(an_offer, st.sampled_from("ab"), st.integers(0, 5), st.integers(1, 4), st.integers(1, 4))
SETS = st.lists(st.lists(OFFERS, min_size=1, max_size=3), max_size=6)


def hold_all(sets: list[list[Offer]]) -> tuple[Calendar, dict[str, list[Offer]]]:
    """A calendar with as many of these sets as there is room for, and which those are."""
    calendar, held = Calendar(NODES), {}
    for number, offers in enumerate(sets):
        hold = hold_of(offers)
        if calendar.fits(hold):
            calendar.take(str(number), hold)
            held[str(number)] = offers
    return calendar, held


def taken(calendar: Calendar) -> list[Take]:
    """All that is taken of the nodes, in steps."""
    busy = calendar.busy(NOON - HOUR, NOON + 24 * HOUR)
    return [step for name in sorted(busy) for step in busy[name]]


@given(SETS, st.lists(OFFERS, min_size=1, max_size=3))
def test_what_gives_way_leaves_room_for_all_that_stays(sets: list[list[Offer]], new: list[Offer]) -> None:
    calendar, held = hold_all(sets)
    before, hold = taken(calendar), hold_of(new)
    displaced = find_displaced(calendar, list(held), hold)
    assert taken(calendar) == before, "trying leaves all as it was"
    for key in displaced:
        calendar.release(key)
    calendar.take(NEW, hold)  # NotBookable if there is no room
    for key in displaced:
        fitting = find_fitting(calendar, held[key])
        calendar.take(key, hold_of(fitting))
        assert len(fitting) < len(held[key]), "what fits whole has not given way"


@given(SETS, st.integers(0, 5))
def test_what_is_set_aside_comes_back_whatever_happens(sets: list[list[Offer]], some: int) -> None:
    calendar, held = hold_all(sets)
    before, keys = taken(calendar), list(held)[:some]
    try:
        with calendar.set_aside(keys):
            assert not any(calendar.takes(key) for key in keys)
            raise RuntimeError
    except RuntimeError:
        assert taken(calendar) == before
        assert all(calendar.takes(key) == hold_of(offers) for key, offers in held.items())


def test_an_answer_is_better_if_it_starts_earlier_or_has_more() -> None:
    known = [an_offer("a", 2, 1, 2)]
    better = {(1, 2): True, (2, 3): True, (2, 2): False, (3, 2): False, (3, 3): True}
    for (start, cores), expected in better.items():
        assert improves(Answer((an_offer("b", start, 1, cores),)), known) is expected
    assert not improves(Answer(), [])
