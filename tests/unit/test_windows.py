"""When a session may begin: intervals, words, and windows that come again by a zone's own clock."""

import contextlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.request import Executable, Recurring, Request, Window
from sublet.booking.model.windows import expand, last_start, parse_interval, parse_start, windows_of
from sublet.kernel.errors import BadRequest

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)  # a Sunday


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-12-01T09:00:00Z/PT3H", "2026-12-01T09:00", "2026-12-01T12:00"),
        ("2026-12-01T09:00:00Z/2026-12-01T12:00:00Z", "2026-12-01T09:00", "2026-12-01T12:00"),
        ("PT3H/2026-12-01T12:00:00Z", "2026-12-01T09:00", "2026-12-01T12:00"),
        ("2026-12-01T09:00:00+01:00/PT0S", "2026-12-01T08:00", "2026-12-01T08:00"),
        ("2026-12-01T09:00:00/PT1H", "2026-12-01T09:00", "2026-12-01T10:00"),  # without an offset it is UTC
        ("2026-12-01/P1D", "2026-12-01T00:00", "2026-12-02T00:00"),
        ("2026-12-01/P1W", "2026-12-01T00:00", "2026-12-08T00:00"),
    ],
)
def test_intervals_are_read_in_each_of_their_forms(text: str, start: str, end: str) -> None:
    assert parse_interval(text) == Window(utc(start), utc(end))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-12-01T12:00:00Z/2026-12-01T09:00:00Z", "ends before it starts"),
        ("2026-12-01T09:00:00Z/P1H", "length of time"),
        ("2026-12-01T09:00:00Z/-PT1H", "point in time"),
        ("2026-12-01T09:00:00Z/T12:00Z", "point in time"),
        ("2026-12-01T09:00:00Z/..", "point in time"),
        ("R5/2026-12-01T09:00:00Z/PT1H", "point in time"),
        ("9999-12-31T00:00:00Z/P400D", "calendar"),
        ("0001-01-01T00:00:00+14:00/PT1H", "point in time"),
        ("/", "point in time"),
        ("soon", "time to start"),
        ("", "time to start"),
        ("mon 25:00-26:00", "time of day"),
        ("mon 09:00-12:00 Mars/Olympus", "time zone"),
        ("mon 09:00-12:00 ../../etc/passwd", "time zone"),
        ("mon 09:00-12:00 Europe", "time zone"),
        ("moonday-wed 09:00-12:00", "time to start"),
        ("within", "time to start"),
        ("within 5", "length of time"),
        ("tomorrow 09:00-12:00 UTC until 2026-12-24", "comes again"),
    ],
)
def test_what_is_no_window_is_refused_with_advice(text: str, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_start(text, NOW)
    assert said in caught.value.message
    assert caught.value.advice


def test_a_bare_instant_is_no_interval_but_a_time_to_start() -> None:
    with pytest.raises(BadRequest) as caught:
        parse_interval("2026-12-01T09:00:00Z")
    assert caught.value.advice == "Write 2026-12-01T09:00:00Z/PT0S."
    assert parse_start("2026-12-01T09:00:00Z", NOW) == Window(utc("2026-12-01T09:00"), utc("2026-12-01T09:05"))


def test_words_are_windows_from_now() -> None:
    assert parse_start("within 5m", NOW) == Window(NOW, NOW + timedelta(minutes=5))
    assert parse_start("Within 2 hours", NOW) == Window(NOW, NOW + timedelta(hours=2))
    assert parse_start("now", NOW) == Window(NOW, NOW + timedelta(minutes=5))


def test_a_day_and_its_hours_are_one_window_in_a_zone() -> None:
    assert parse_start("tomorrow 9-12", NOW) == Window(utc("2026-11-16T09:00"), utc("2026-11-16T12:00"))
    paris = parse_start("2026-12-01 09:00-12:00 Europe/Paris", NOW)
    assert paris == Window(utc("2026-12-01T08:00"), utc("2026-12-01T11:00"))
    night = parse_start("today 22:00-06:00", NOW)
    assert night == Window(utc("2026-11-15T22:00"), utc("2026-11-16T06:00"))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("mon-wed", (0, 1, 2)),
        ("monday-wednesday", (0, 1, 2)),
        ("fri-mon", (0, 4, 5, 6)),
        ("tue,thu", (1, 3)),
        ("daily", tuple(range(7))),
        ("weekdays", tuple(range(5))),
        ("weekend", (5, 6)),
    ],
)
def test_days_of_the_week_are_read_as_people_write_them(text: str, days: tuple[int, ...]) -> None:
    assert parse_start(f"{text} 09:00-12:00 Europe/London", NOW) == Recurring(days, "09:00", "12:00", "Europe/London")


def test_recurring_windows_may_end_some_day() -> None:
    read = parse_start("mon 09:00-24:00 UTC until 2026-12-01", NOW)
    assert isinstance(read, Recurring)
    assert (read.ends, read.until) == ("00:00", utc("2026-12-01T00:00"))
    assert len(list(expand(read, NOW, NOW + timedelta(days=365)))) == 3


def test_a_recurring_window_keeps_the_hour_of_its_zone_across_the_change_of_clocks() -> None:
    recurring = Recurring((6,), "09:00", "12:00", "Europe/London")
    found = list(expand(recurring, utc("2026-10-17T00:00"), utc("2026-11-03T00:00")))
    assert [window.start for window in found] == [
        utc("2026-10-18T08:00"),  # summer time
        utc("2026-10-25T09:00"),  # the clocks went back that night
        utc("2026-11-01T09:00"),
    ]


def test_a_window_that_the_clock_jumps_over_is_left_out() -> None:
    recurring = Recurring((6,), "01:30", "02:15", "Europe/London")  # on 2026-03-29 the clock goes from 01:00 to 02:00
    found = list(expand(recurring, utc("2026-03-22T00:00"), utc("2026-04-06T00:00")))
    assert [window.start.day for window in found] == [22, 5]


def test_a_window_over_midnight_is_still_open_after_it() -> None:
    recurring = Recurring((6,), "22:00", "06:00", "UTC")
    after = utc("2026-11-16T02:00")
    assert next(iter(expand(recurring, after, after + timedelta(days=1)))).start == utc("2026-11-15T22:00")


def request(*windows: Window, recurring: tuple[Recurring, ...] = ()) -> Request:
    return Request(Executable("command"), windows=windows, recurring=recurring)


def test_windows_that_are_over_or_beyond_the_horizon_are_left_out() -> None:
    hour = timedelta(hours=1)
    over, open_, far = (Window(NOW + n * hour, NOW + (n + 2) * hour) for n in (-5, -1, 9000))
    assert windows_of(request(far, over, open_), NOW, timedelta(days=30)) == (open_,)


def test_a_window_of_no_length_admits_its_own_start() -> None:
    instant = Window(NOW, NOW)
    assert windows_of(request(instant), NOW, timedelta(days=1)) == (instant,)
    assert last_start(instant) == NOW
    assert last_start(Window(NOW, NOW + timedelta(hours=1))) == NOW + timedelta(minutes=59, seconds=59)


@given(
    st.sets(st.integers(0, 6), min_size=1),
    st.times(),
    st.times(),
    st.sampled_from(
        ["UTC", "Europe/London", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"]
    ),
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),
)
def test_every_recurring_window_begins_on_an_asked_day_at_the_asked_time(days, begins, ends, zone, now) -> None:
    recurring = Recurring(tuple(days), f"{begins:%H:%M}", f"{ends:%H:%M}", zone)
    found = list(expand(recurring, now, now + timedelta(days=20)))
    assert found == sorted(found, key=lambda window: window.start)
    for window in found:
        assert window.end > now
        assert window.start < window.end
        local = window.start.astimezone(ZoneInfo(zone))
        exists = f"{local:%H:%M}" == recurring.begins
        skipped = local.utcoffset() != (window.start - timedelta(hours=2)).astimezone(ZoneInfo(zone)).utcoffset()
        assert exists or skipped
        assert local.weekday() in days or skipped


@given(st.text(alphabet="0123456789-:/ TZPHMSDmonweduntilEurope.+", max_size=40))
def test_any_text_is_a_window_or_a_bad_request(text: str) -> None:
    with contextlib.suppress(BadRequest):
        found = parse_start(text, NOW)
        if isinstance(found, Window):
            assert found.start <= found.end
            assert found.start.tzinfo is UTC
