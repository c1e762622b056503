"""Pledges of memory, GPUs and storage, any number of them, and at times only: each amount is bounded for itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Answer, Node, Offer, Take
from sublet.booking.model.pledge import OPEN, find_sources, list_sets, offers_within, pool_of, sizes_in, storage_pool
from sublet.booking.model.pledged import Pledged, list_schedule_takes, most_of, pools_of_all, sizes_of
from sublet.booking.model.request import GIB, Window
from sublet.booking.model.schedule import off_hours, parse_schedule
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import NotBookable
from sublet.platforms.pledge_settings import PledgeSettings
from tests.unit.test_pledge import can_be_placed

MONDAY = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NODE = Node("n", 20, 100 * GIB, 8)
THERE = {"cores": 20, "memory": 100 * GIB, "gpus": 8, "storage": 1000}


def a_calendar(pledges: dict[str, Pledged], node: Node = NODE, now: datetime = MONDAY) -> Calendar:
    there = {"cores": node.cores, "memory": node.memory, "gpus": node.gpus, "storage": 1000}
    calendar = Calendar([node], {"disk": 1000, **pools_of_all(pledges, there)})
    calendar.put("others", list_schedule_takes(pledges, now))
    return calendar


def take(calendar: Calendar, key: str, names: set[str], shape: Shape, start: datetime = MONDAY, size: int = 0) -> bool:
    """Whether so much could be booked for an hour by someone who draws on these."""
    end, pool = start + HOUR, pool_of(names)
    takes = [
        Take("n", start, end, shape.cores, shape.memory, shape.gpus),
        Take(pool, start, end, 0, shape.memory, shape.gpus, size=shape.cores, pool=True),
    ]
    if size:
        takes += [
            Take("disk", start, end, size=size, pool=True),
            Take(storage_pool(pool), start, end, size=size, pool=True),
        ]
    if not calendar.fits(takes):
        with pytest.raises(NotBookable):
            calendar.take(key, takes)
        return False
    calendar.take(key, takes)
    return True


def test_gpus_that_are_pledged_are_kept_from_others_and_cores_come_from_what_is_open() -> None:
    calendar = a_calendar({"ml": Pledged(gpus=6)})
    assert not take(calendar, "a", {OPEN}, Shape(1, GIB, 3)), "two GPUs are open"
    assert take(calendar, "b", {OPEN}, Shape(1, GIB, 2))
    assert take(calendar, "c", {"ml"}, Shape(10, GIB, 5))
    assert not take(calendar, "d", {"ml"}, Shape(1, GIB, 2))
    assert take(calendar, "e", {"ml"}, Shape(9, GIB, 1))
    assert not take(calendar, "f", {OPEN}, Shape(1, GIB, 0)), "every core is taken"
    calendar.release("c")
    assert calendar.room(pool_of({"ml"}), MONDAY, MONDAY + HOUR).gpus == 5


def test_memory_and_storage_are_pledged_as_cores_are() -> None:
    calendar = a_calendar({"big": Pledged(cores=10, memory=80 * GIB, storage=900)})
    assert not take(calendar, "a", {OPEN}, Shape(1, 30 * GIB))
    assert not take(calendar, "b", {"big"}, Shape(11, GIB))
    assert take(calendar, "c", {"big"}, Shape(1, 80 * GIB), size=800)
    assert not take(calendar, "d", {OPEN}, Shape(1, GIB), size=101)
    assert take(calendar, "e", {OPEN}, Shape(1, GIB), size=100)
    slot = calendar.earliest(
        Shape(1, GIB), 1, HOUR, [Window(MONDAY, MONDAY + DAY)], storage={"disk": 101}, pledge=pool_of({"big"})
    )
    assert slot
    assert slot.start == MONDAY + HOUR, "its storage has room when the first has ended"
    assert most_of({"big"}, calendar.pools) == Shape(10, 80 * GIB, most_of({"big"}, calendar.pools).gpus)


amounts_ = st.tuples(st.integers(0, 4), st.integers(0, 3))
names_ = st.sets(st.sampled_from(("a", "b", OPEN)), min_size=1)


@given(
    st.fixed_dictionaries(
        {name: st.tuples(st.none() | st.integers(1, 5), st.none() | st.integers(1, 4)) for name in "ab"}
    ),
    st.lists(st.tuples(amounts_, names_), max_size=7),
)
def test_what_is_booked_can_be_placed_in_every_amount_and_what_can_is_booked(
    pledged: dict[str, tuple[int | None, int | None]], wanted: list[tuple[tuple[int, int], set[str]]]
) -> None:
    pledges = {name: Pledged(cores=cores, gpus=gpus) for name, (cores, gpus) in pledged.items()}
    calendar = a_calendar(pledges, Node("n", 12, GIB, 9))
    booked: list[tuple[tuple[int, int], set[str]]] = []
    for number, (amounts, names) in enumerate(wanted):
        more = [*booked, (amounts, names)]
        possible = True
        for place, amount in enumerate(("cores", "gpus")):
            sizes = sizes_of(calendar.pools, amount) or {OPEN: (12, 9)[place]}
            draws = [(each[place], find_sources(pool_of(some), sizes)) for each, some in more]
            possible &= can_be_placed(sizes, draws)
        assert take(calendar, str(number), names, Shape(amounts[0], 0, amounts[1])) == possible
        booked = more if possible else booked


def test_a_pledge_for_nights_and_weekends_is_open_by_day() -> None:
    night = Pledged(cores=15, gpus=8, when=parse_schedule("Mon-Fri 18:00-08:00, Sat-Sun"))
    calendar = a_calendar({"night": night})
    noon, evening, saturday = MONDAY, MONDAY.replace(hour=20), MONDAY + 5 * DAY
    assert not take(calendar, "a", {"night"}, Shape(1, GIB), noon), "it is not in force by day"
    assert take(calendar, "b", {OPEN}, Shape(20, GIB, 8), noon)
    for moment in (evening, saturday, MONDAY + 8 * DAY - 5 * HOUR):
        assert not take(calendar, f"c{moment}", {OPEN}, Shape(6, GIB), moment)
        assert take(calendar, f"d{moment}", {OPEN}, Shape(5, GIB), moment)
        assert not take(calendar, f"e{moment}", {OPEN}, Shape(0, GIB, 1), moment)
        assert take(calendar, f"f{moment}", {"night"}, Shape(15, GIB, 8), moment)
    slot = calendar.earliest(Shape(1, GIB), 1, 2 * HOUR, [Window(noon, noon + 3 * DAY)], pledge=pool_of({"night"}))
    assert slot
    assert slot.start == MONDAY.replace(hour=18), "it is in force from then on"
    across = {"night", OPEN}
    assert take(calendar, "g", across, Shape(20, GIB, 8), MONDAY + DAY)
    assert not any(calendar.busy(MONDAY + 2 * DAY, MONDAY + 3 * DAY).values()), "hours are nobody's bookings"


def test_two_pledges_at_times_leave_the_rest_open_at_every_hour() -> None:
    pledges = {
        "n": Pledged(cores=8, when=parse_schedule("nights")),
        "w": Pledged(cores=7, when=parse_schedule("weekends")),
    }
    calendar = a_calendar(pledges)
    friday_noon, friday_night = MONDAY + 4 * DAY, (MONDAY + 4 * DAY).replace(hour=22)
    sunday_noon, sunday_night = MONDAY + 6 * DAY, (MONDAY + 6 * DAY).replace(hour=22)
    free = {friday_noon: 20, friday_night: 12, sunday_noon: 13, sunday_night: 5}
    for moment, cores in free.items():
        assert calendar.room(pool_of({OPEN}), moment, moment + HOUR).cores == cores


def test_of_many_pledges_each_is_drawn_on_alone() -> None:
    names = [f"p{number}" for number in range(12)]
    calendar = a_calendar({name: Pledged(cores=1) for name in names})
    assert len(list_sets([*names, OPEN])) == 13
    for name in names:
        assert take(calendar, name, {name}, Shape(1, GIB))
        assert not take(calendar, f"{name}-more", {name}, Shape(1, GIB))
    assert not take(calendar, "open", {OPEN}, Shape(9, GIB))
    assert take(calendar, "open", {OPEN}, Shape(8, GIB))
    looked: list[set[str]] = []
    offer = Offer("site", "sh", MONDAY, MONDAY, HOUR, ("n",), Shape(1, GIB))

    def look(pledge: Any) -> Answer:
        looked.append(set(pledge))
        return Answer((replace(offer, pledge=dict(pledge)),))

    assert offers_within(names, sizes_in(calendar.pools), 1, 6, look).offers
    assert all(len(each) == 1 for each in looked)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("always", 7 * 24),
        ("weekends", 48),
        ("nights", 7 * 12),
        ("nights, weekends", 12 * 7 + 24),
        ("Mon-Fri 18:00-08:00, Sat-Sun", 5 * 14 + 48 - 8),
        ("fri-mon", 96),
        ("wed 08:00-08:30", 0.5),
    ],
)
def test_hours_of_a_week(text: str, hours: float) -> None:
    schedule = parse_schedule(text)
    week = (MONDAY.replace(hour=0) + 7 * DAY, MONDAY.replace(hour=0) + 14 * DAY)
    pieces = [(max(start, week[0]), min(end, week[1])) for start, end in schedule.hours(MONDAY)]
    assert sum((end - start for start, end in pieces if start < end), timedelta(0)) == hours * HOUR
    off = [(max(start, week[0]), min(end, week[1])) for start, end in off_hours(schedule, MONDAY)]
    assert sum((end - start for start, end in off if start < end), timedelta(0)) == (7 * 24 - hours) * HOUR


def test_hours_are_those_of_the_zone_also_when_clocks_change() -> None:
    london = parse_schedule("mon-sun 09:00-10:00", "Europe/London")
    starts = [start for start, _ in london.hours(datetime(2026, 10, 23, tzinfo=UTC))]
    assert [start.hour for start in starts[:4]] == [8, 8, 9, 9], "summer time ends on the 25th"


@pytest.mark.parametrize(
    "text", ["", "daily", "mon 8-9", "mon 25:00-26:00", "mon 08:60-09:00", "xyz", "mon,,tue", "mon 08:00"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write days and hours|no time of a day"):
        parse_schedule(text)


def test_a_pledge_of_nothing_or_in_no_zone_is_refused() -> None:
    for wrong in (
        {},
        {"cores": 1, "when": "sometimes"},
        {"cores": 1, "when": "nights", "zone": "Mars/Base"},
        {"gpus": 0},
    ):
        with pytest.raises(ValueError, match=r"\w"):
            PledgeSettings(**wrong)  # type: ignore[arg-type]
    assert PledgeSettings(memory="64GiB").pledged == Pledged(memory=64 * GIB)  # type: ignore[arg-type]
