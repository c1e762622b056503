"""Times as people say them, by their own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.request import Recurring, Window
from sublet.booking.model.windows import parse_start, pin_start
from sublet.cli.texts import moment, with_local_times
from sublet.kernel.errors import BadRequest

BERLIN, CHICAGO, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Chicago"), ZoneInfo("Asia/Kolkata")
NOW = datetime(2026, 11, 16, 14, 30, tzinfo=BERLIN)  # a Monday afternoon
SLACK = timedelta(minutes=5)
WORDS = (
    *("next", "this", "tomorrow", "tonight", "tuesday", "9am", "14:00", "at", "in", "2", "hours", "after", "by", "/"),
    *("2026-12-01", "noon", "morning", "weekend", "UTC", "9-12", "not", "before", "half", "an", "to", "-", "week"),
    *("1", "dec", "2026", "and", "two", "day"),
)


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ("09:00", "2026-11-17T09:00"),  # that of today is over
        ("15:00", "2026-11-16T15:00"),
        ("at 3pm", "2026-11-16T15:00"),
        ("3 pm", "2026-11-16T15:00"),
        ("noon", "2026-11-17T12:00"),
        ("tomorrow 9am", "2026-11-17T09:00"),
        ("tomorrow at 9:30 AM", "2026-11-17T09:30"),
        ("9am tomorrow", "2026-11-17T09:00"),
        ("today 12am", "2026-11-16T00:00"),
        ("tomorrow 12pm", "2026-11-17T12:00"),
        ("tonight 22:00", "2026-11-16T22:00"),
        ("tonight 2am", "2026-11-17T02:00"),
        ("tonight 24:00", "2026-11-17T00:00"),
        ("24:00", "2026-11-17T00:00"),
        ("tomorrow 24:00", "2026-11-18T00:00"),  # at the end of that day
        ("friday 24:00", "2026-11-21T00:00"),
        ("2026-12-01 24:00", "2026-12-02T00:00"),
        ("next tuesday 14:00", "2026-11-17T14:00"),
        ("next monday 14:00", "2026-11-23T14:00"),
        ("monday 14:00", "2026-11-23T14:00"),  # that of today is over
        ("Monday, 15:00", "2026-11-16T15:00"),
        ("on friday at 17:00", "2026-11-20T17:00"),
        ("fri 5pm", "2026-11-20T17:00"),
        ("2026-12-01 14:00", "2026-12-01T14:00"),
        ("2026-12-01T14:00", "2026-12-01T14:00"),
        ("2026-12-01 14:00:30", "2026-12-01T14:00:30"),
        ("2026-12-01 2pm", "2026-12-01T14:00"),
        ("in 2 hours", "2026-11-16T16:30"),
        ("in 90m", "2026-11-16T16:00"),
        ("in an hour", "2026-11-16T15:30"),
        ("in half an hour", "2026-11-16T15:00"),
        ("in 3 days", "2026-11-19T14:30"),
        ("in two days", "2026-11-18T14:30"),
        ("in 2 hours and 30 minutes", "2026-11-16T17:00"),
        ("day after tomorrow 9am", "2026-11-18T09:00"),
        ("Tue 1 Dec 09:00", "2026-12-01T09:00"),  # as Sublet prints it
        ("Sun 31 Oct 2027 14:30", "2027-10-31T14:30"),
        ("1 dec 9am", "2026-12-01T09:00"),
        ("9am on December 1st", "2026-12-01T09:00"),
        ("Dec 1, 2027 at 14:00", "2027-12-01T14:00"),
        ("the 1st of December 14:00", "2026-12-01T14:00"),
        ("16 nov 15:00", "2026-11-16T15:00"),
        ("15 november 15:00", "2027-11-15T15:00"),  # that of this year is over
        ("29 feb 12:00", "2028-02-29T12:00"),
    ],
)
def test_a_single_time_is_then_or_a_few_minutes_later(said: str, start: str) -> None:
    assert parse_start(said, NOW) == Window(at(start), at(start) + SLACK)


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("today", "2026-11-16T14:30", "2026-11-17T00:00"),
        ("tomorrow", "2026-11-17T00:00", "2026-11-18T00:00"),
        ("Tonight", "2026-11-16T18:00", "2026-11-17T06:00"),
        ("tomorrow morning", "2026-11-17T06:00", "2026-11-17T12:00"),
        ("tomorrow night", "2026-11-17T18:00", "2026-11-18T06:00"),
        ("tonight 22:00 to 2am", "2026-11-16T22:00", "2026-11-17T02:00"),
        ("tonight 2am to 4am", "2026-11-17T02:00", "2026-11-17T04:00"),
        ("tonight between 1:00 and 3:00", "2026-11-17T01:00", "2026-11-17T03:00"),
        ("today 22:00-24:00", "2026-11-16T22:00", "2026-11-17T00:00"),
        ("by tomorrow 24:00", "2026-11-16T14:30", "2026-11-18T00:00"),
        ("this evening", "2026-11-16T18:00", "2026-11-17T00:00"),
        ("next tuesday", "2026-11-17T00:00", "2026-11-18T00:00"),
        ("next mon", "2026-11-23T00:00", "2026-11-24T00:00"),
        ("monday", "2026-11-16T14:30", "2026-11-17T00:00"),
        ("thursday", "2026-11-19T00:00", "2026-11-20T00:00"),
        ("next week", "2026-11-23T00:00", "2026-11-30T00:00"),
        ("this weekend", "2026-11-21T00:00", "2026-11-23T00:00"),
        ("2026-12-01", "2026-12-01T00:00", "2026-12-02T00:00"),
        ("2026-12-01 morning", "2026-12-01T06:00", "2026-12-01T12:00"),
        ("tomorrow 09:00-12:00", "2026-11-17T09:00", "2026-11-17T12:00"),
        ("tomorrow 9am-5pm", "2026-11-17T09:00", "2026-11-17T17:00"),
        ("tomorrow from 9 to 17:30", "2026-11-17T09:00", "2026-11-17T17:30"),
        ("next friday 22:00-06:00", "2026-11-20T22:00", "2026-11-21T06:00"),
        ("09:00-12:00", "2026-11-17T09:00", "2026-11-17T12:00"),
        ("14:00-15:00", "2026-11-16T14:30", "2026-11-16T15:00"),
        ("after friday 17:00", "2026-11-20T17:00", "2026-12-20T17:00"),
        ("from tomorrow", "2026-11-17T00:00", "2026-12-17T00:00"),
        ("not before 18:00", "2026-11-16T18:00", "2026-12-16T18:00"),
        ("by friday 17:00", "2026-11-16T14:30", "2026-11-20T17:00"),
        ("before tomorrow", "2026-11-16T14:30", "2026-11-17T00:00"),
    ],
)
def test_days_and_parts_of_days_are_windows(said: str, start: str, end: str) -> None:
    assert parse_start(said, NOW) == Window(at(start), at(end))


@pytest.mark.parametrize("zone", [BERLIN, CHICAGO, KOLKATA, ZoneInfo("Pacific/Apia"), ZoneInfo("UTC")])
def test_words_are_meant_by_the_clock_of_who_says_them(zone: ZoneInfo) -> None:
    now = NOW.astimezone(zone)
    tomorrow = parse_start("tomorrow 9am", now)
    assert isinstance(tomorrow, Window)
    local = tomorrow.start.astimezone(zone)
    assert (local.hour, local.minute, local.date()) == (9, 0, now.date() + timedelta(days=1))


def test_a_zone_that_is_named_counts_instead() -> None:
    assert parse_start("tomorrow 9am America/Chicago", NOW) == Window(
        at("2026-11-17T09:00", CHICAGO), at("2026-11-17T09:05", CHICAGO)
    )
    assert parse_start("2026-12-01 14:00 UTC", NOW) == Window(
        datetime(2026, 12, 1, 14, tzinfo=UTC), datetime(2026, 12, 1, 14, 5, tzinfo=UTC)
    )
    assert parse_start("tonight CET", NOW) == parse_start("tonight", NOW)


def test_hours_that_come_again_keep_the_zone_of_who_says_them() -> None:
    assert parse_start("weekdays 9am-5pm", NOW) == Recurring(tuple(range(5)), "09:00", "17:00", "Europe/Berlin")


def test_the_day_on_which_clocks_change_is_as_long_as_it_is() -> None:
    spring, autumn = at("2026-03-28T12:00"), at("2026-10-24T12:00")
    for eve, hours in ((spring, 23), (autumn, 25)):
        day = parse_start("tomorrow", eve)
        assert isinstance(day, Window)
        assert day.end - day.start == timedelta(hours=hours)


def test_a_time_that_is_skipped_is_later_and_one_that_comes_twice_is_the_first() -> None:
    skipped = parse_start("tomorrow 02:30", at("2026-03-28T12:00"))
    twice = parse_start("tomorrow 02:30", at("2026-10-24T12:00"))
    assert isinstance(skipped, Window)
    assert isinstance(twice, Window)
    assert skipped.start == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # 03:30 of that day
    assert twice.start == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # still summer time


def test_lengths_of_time_don_t_follow_the_clock() -> None:
    assert parse_start("in 24 hours", at("2026-10-24T12:00")) == Window(at("2026-10-25T11:00"), at("2026-10-25T11:05"))


def test_before_dawn_tonight_is_the_night_that_is_on() -> None:
    assert parse_start("tonight", at("2026-11-17T02:00")) == Window(at("2026-11-17T02:00"), at("2026-11-17T06:00"))


@pytest.mark.parametrize(
    ("said", "start"),
    [("tonight 3am", "2026-11-17T03:00"), ("tonight 1am", "2026-11-18T01:00"), ("tonight 23:30", "2026-11-17T23:30")],
)
def test_before_dawn_an_hour_of_the_night_that_is_over_is_that_of_the_next(said: str, start: str) -> None:
    assert parse_start(said, at("2026-11-17T02:00")) == Window(at(start), at(start) + SLACK)


@pytest.mark.parametrize(
    "said",
    [
        "soon",
        "next",
        "next moonday",
        "9",
        "tomorrow 25:00",
        "tomorrow 13pm",
        "in",
        "in a moment",
        "yesterday-ish",
        "2026-02-30",
        "2026-13-01 09:00",
        "after",
        "tomorrow tomorrow",
        "9999-12-31",
        "not before",
        "tomorrow 9am Mars/Olympus",
    ],
)
def test_what_is_not_understood_is_refused_with_advice(said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_start(said, NOW)
    assert caught.value.advice


def test_the_advice_lists_the_forms() -> None:
    with pytest.raises(BadRequest) as caught:
        parse_start("whenever", NOW)
    for form in ("tonight", "tomorrow 9am", "next tuesday", "in 2 hours", "2026-12-01 14:00", "09:00"):
        assert form in caught.value.advice
        assert parse_start(form, NOW)


@given(
    said=st.lists(st.sampled_from(WORDS), max_size=5),
    now=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
    zone=st.sampled_from([BERLIN, CHICAGO, KOLKATA, ZoneInfo("Australia/Lord_Howe")]),
)
def test_any_words_are_a_window_that_runs_forward_or_are_refused(
    said: list[str], now: datetime, zone: ZoneInfo
) -> None:
    try:
        found = parse_start(" ".join(said), now.replace(tzinfo=zone))
    except BadRequest:
        return
    assert isinstance(found, Recurring) or found.start <= found.end


@pytest.mark.parametrize(
    ("said", "pinned"),
    [
        ("tomorrow 9am", "2026-11-17T08:00:00Z/2026-11-17T08:05:00Z"),
        ("weekdays 9-17", "weekdays 9-17 Europe/Berlin"),
        ("mon 9-17 until 2027-01-01", "mon 9-17 Europe/Berlin until 2027-01-01"),
        ("mon 9-17 Asia/Kolkata", "mon 9-17 Asia/Kolkata"),
        ("within 2h", "within 2h"),
        ("now", "now"),
        ("2026-12-01T09:00:00/PT3H", "2026-12-01T09:00:00/PT3H"),
    ],
)
def test_a_start_is_pinned_so_that_a_service_elsewhere_reads_the_same(said: str, pinned: str) -> None:
    assert pin_start(said, NOW) == pinned
    anywhere = NOW.astimezone(KOLKATA)
    assert parse_start(pinned, anywhere) == parse_start(said, NOW)


@pytest.mark.parametrize("days", [*range(2, 400, 7), 800])
def test_a_start_that_was_printed_can_be_typed(days: int) -> None:
    start = at("2026-11-16T09:05") + timedelta(days=days)
    printed = moment(start, NOW, BERLIN)
    assert parse_start(printed, NOW) == Window(start, start + SLACK), printed


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("wed 1 dec", "2026-12-01 is a Tuesday"),
        ("31 june 09:00", "31 june is not a day of the calendar"),
        ("29 feb 2027", "is not a day of the calendar"),
        ("dec", "is not a time to start"),
        ("1 2 dec", "is not a time to start"),
        ("in and", "is not a length of time"),
    ],
)
def test_a_date_that_does_not_exist_says_why(said: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        parse_start(said, NOW)


def test_an_example_of_an_instant_is_shown_as_it_is_typed() -> None:
    with pytest.raises(BadRequest) as caught:
        parse_start("11/20/2026", NOW)
    assert with_local_times(caught.value.advice) == caught.value.advice
