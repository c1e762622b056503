"""The times of a recurring booking: by the zone's own clock, whatever that does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from sublet.booking.cli.series import draw_seats
from sublet.booking.model.series import MOST, BookedSeat, SeatState, Series, check_size, plan_occurrences
from sublet.booking.views.series import BookingView, SeatView
from sublet.kernel.errors import BadAmount, BadRequest

YEAR = timedelta(days=400)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OCTOBER = datetime(2026, 10, 12, 12, tzinfo=UTC)


def test_nine_oclock_stays_nine_oclock_when_the_clocks_go_back() -> None:
    times = plan_occurrences("mon 09:00-12:00 Europe/Berlin", OCTOBER, YEAR, count=3)
    assert [f"{time.start:%m-%d %H:%M}" for time in times] == ["10-19 07:00", "10-26 08:00", "11-02 08:00"]
    assert {time.end - time.start for time in times} == {3 * HOUR}


def test_a_night_with_an_hour_more_or_less_lasts_as_long_as_its_clock_says() -> None:
    back = plan_occurrences("daily 01:00-04:00 Europe/Berlin", datetime(2026, 10, 24, 12, tzinfo=UTC), YEAR, count=1)
    forth = plan_occurrences("daily 01:00-04:00 Europe/Berlin", datetime(2027, 3, 27, 12, tzinfo=UTC), YEAR, count=1)
    assert (back[0].end - back[0].start, forth[0].end - forth[0].start) == (4 * HOUR, 2 * HOUR)


def test_a_time_that_there_is_not_in_one_night_is_left_out() -> None:
    saturday = datetime(2027, 3, 27, 12, tzinfo=UTC)
    times = plan_occurrences("daily 02:00-03:00 Europe/Berlin", saturday, YEAR, count=2)
    assert [time.start.date() for time in times] == [date(2027, 3, 29), date(2027, 3, 30)]
    times = plan_occurrences("daily 02:30-04:00 Europe/Berlin", saturday, YEAR, count=2)
    assert [time.start.date() for time in times] == [date(2027, 3, 29), date(2027, 3, 30)]


def test_days_are_left_out_and_an_end_is_kept_to() -> None:
    times = plan_occurrences(
        "mon,wed 09:00-10:00 UTC",
        OCTOBER,
        YEAR,
        until=datetime(2026, 10, 26, 9, tzinfo=UTC),
        without=[date(2026, 10, 19)],
    )
    assert [time.start.date() for time in times] == [date(2026, 10, 14), date(2026, 10, 21)]


@pytest.mark.parametrize(
    ("every", "limits", "words"),
    [
        ("tomorrow 9am", {"count": 2}, "only once"),
        ("mon 09:00-10:00 UTC", {}, "how often or until when"),
        ("mon 09:00-10:00 UTC", {"count": 2, "until": OCTOBER}, "how often or until when"),
        ("mon 09:00-10:00 UTC", {"until": OCTOBER}, "still to come"),
        ("mon 09:00-10:00 UTC", {"count": 99}, "only 57 of 99"),
    ],
)
def test_what_can_not_be_booked_is_refused_with_the_reason(every: str, limits: dict[str, object], words: str) -> None:
    with pytest.raises(BadRequest) as raised:
        plan_occurrences(every, OCTOBER, YEAR, **limits)  # type: ignore[arg-type]
    assert words in raised.value.message


def test_a_rule_that_can_not_be_read_says_what_can() -> None:
    with pytest.raises(BadAmount):
        plan_occurrences("now and then", OCTOBER, YEAR, count=1)


def test_a_booking_has_no_more_sessions_than_can_be_taken_at_once() -> None:
    times = plan_occurrences("daily 09:00-10:00 UTC", OCTOBER, YEAR, count=10)
    check_size(times, MOST // 10)
    with pytest.raises(BadRequest):
        check_size(times, MOST // 10 + 1)


def test_a_day_is_that_of_the_zone() -> None:
    start = datetime(2026, 11, 1, 23, 30, tzinfo=UTC)
    seat = BookedSeat(1, 1, start, start + HOUR, SeatState.BOOKED, "id")
    made = Series("id", "me", "n", "daily 00:30-01:30 Europe/Berlin", 1, "all", "{}", start, start, seats=(seat,))
    assert (made.on(date(2026, 11, 2)), made.on(date(2026, 11, 1))) == ([seat], [])


def test_what_was_moved_is_shown_in_the_order_of_its_days() -> None:
    states = ((OCTOBER, "moved"), (OCTOBER + 7 * DAY, "booked"), (OCTOBER + DAY, "booked"))
    seats = tuple(
        SeatView(number=1, seat=1, start=time, end=time + HOUR, state=state, session=f"{time:%d}")
        for time, state in states
    )
    facts: dict[str, Any] = {"name": "course", "every": "mon", "state": "booked", "fit": "all", "seats_each": 1}
    view = BookingView(id="3f2a", short="3f2a", created=OCTOBER, expires=OCTOBER, seats=seats, **facts)
    assert [line.split()[1] for line in draw_seats(view)[1:]] == ["2026-10-12", "2026-10-13", "2026-10-19"]
