"""Amounts are read as people and schedulers write them, and printed so that they read back the same."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sublet.booking.model.amounts import (
    MOST_MEMORY,
    MOST_TIME,
    duration_iso,
    duration_text,
    gib,
    memory_text,
    parse_count,
    parse_counts,
    parse_duration,
    parse_memories,
    parse_memory,
)
from sublet.booking.model.request import GIB, Range
from sublet.kernel.errors import BadAmount
from sublet.kernel.texts import describe_duration

lengths = st.timedeltas(timedelta(0), MOST_TIME)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64GiB", 64 * GIB),
        ("512M", 512 * 1024**2),
        ("512MB", 512_000_000),
        ("1.5TiB", 1536 * GIB),
        ("2 GiB", 2 * GIB),
        ("4g", 4 * GIB),
        ("100B", 100),
        ("0.1KiB", 103),  # not less than was asked for
    ],
)
def test_memory_is_read_with_its_unit(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "4", "-4GiB", "GiB", "4XiB", "1e9B", "2000PiB", "٣GiB", "9" * 5000 + "GiB"])
def test_what_is_no_memory_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadAmount) as caught:
        parse_memory(text)
    assert caught.value.advice


def test_memory_without_a_unit_is_told_which_to_write() -> None:
    with pytest.raises(BadAmount) as caught:
        parse_memory("8")
    assert caught.value.advice == "Write 8GiB."


@given(st.integers(0, MOST_MEMORY))
def test_printed_memory_reads_back_the_same(size: int) -> None:
    assert parse_memory(memory_text(size)) == size


def test_memory_is_printed_in_the_unit_that_people_would_choose() -> None:
    assert [memory_text(n) for n in (0, 64 * GIB, 1536 * GIB, 1000)] == ["0B", "64GiB", "1.5TiB", "1000B"]


@pytest.mark.parametrize("number", [-1, float("nan"), float("inf"), 1e30, True])
def test_a_number_of_gib_must_be_one_that_a_machine_could_have(number: float) -> None:
    with pytest.raises(BadAmount):
        gib(number)


def test_a_fraction_of_gib_is_whole_bytes() -> None:
    assert gib(0.5) == GIB // 2


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("1h30m", 90),
        ("90m", 90),
        ("1.5h", 90),
        ("2 hours", 120),
        ("1 h 5 min", 65),
        ("1-02:00:00", 26 * 60),
        ("1-02", 26 * 60),
        ("02:00:00", 120),
        ("PT1H30M", 90),
        ("P8D", 8 * 1440),
        ("P1W", 7 * 1440),
        ("P1DT12H", 36 * 60),
        ("PT0S", 0),
    ],
)
def test_time_is_read_as_people_slurm_and_iso_write_it(text: str, minutes: int) -> None:
    assert parse_duration(text) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("P1H", "PT1H or 1h"),
        ("90", "90s for seconds, 90m for minutes, 90h for hours"),
        ("1:30", "1:30:00"),
        ("-1h", "1h30m"),
        ("P1M", "days"),
        ("P1Y", "days"),
        ("500d", "400d or less"),
        ("", "1h30m"),
        ("P", "PT1H30M"),
        ("PT", "PT1H30M"),
        ("P1DT", "PT1H30M"),
        ("1m1h", "1h30m"),
        ("1-25:00:00", "1-02:00:00"),
    ],
)
def test_what_is_no_time_is_refused_and_told_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(BadAmount) as caught:
        parse_duration(text)
    assert advice in caught.value.advice


@given(lengths)
def test_printed_time_reads_back_the_same(length: timedelta) -> None:
    whole = timedelta(seconds=length // timedelta(seconds=1))
    for exact in (length, whole):
        assert abs(parse_duration(duration_text(exact)) - exact) <= timedelta(microseconds=1)
        assert abs(parse_duration(duration_iso(exact)) - exact) <= timedelta(microseconds=1)
    assert parse_duration(duration_text(whole)) == whole


def test_time_is_printed_without_what_is_nothing() -> None:
    times = [timedelta(0), timedelta(hours=2), timedelta(days=8), timedelta(days=1, hours=2, seconds=3)]
    assert [duration_text(time) for time in times] == ["0s", "2h", "8d", "1d2h3s"]
    assert [duration_iso(time) for time in times] == ["PT0S", "PT2H", "P8D", "P1DT2H3S"]


@example("0\x1f")
@given(st.text(max_size=30))
def test_any_text_is_an_amount_or_a_bad_amount(text: str) -> None:
    for parse in (parse_memory, parse_duration, parse_counts, parse_memories):
        with contextlib.suppress(BadAmount):
            parse(text)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, [], "x", "-3", 10**9, 10**400, float("nan"), float("inf")])
def test_what_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(BadAmount):
        parse_count(value)


def test_a_count_may_come_as_text_or_as_a_whole_float() -> None:
    assert (parse_count("4"), parse_count(4.0), parse_count(0, least=0)) == (4, 4, 0)


def test_a_range_has_the_smaller_first() -> None:
    assert parse_counts("2-8") == Range(2, 8)
    assert parse_memories("4GiB-8GiB") == Range(4 * GIB, 8 * GIB)
    for parse, text in ((parse_counts, "8-2"), (parse_memories, "8GiB-4GiB")):
        with pytest.raises(BadAmount):
            parse(text)


@given(lengths)
def test_a_duration_in_words_can_be_typed_again_and_is_exact(length: timedelta) -> None:
    whole = timedelta(seconds=round(length.total_seconds()))
    assert parse_duration(describe_duration(whole)) == whole


@pytest.mark.parametrize(
    ("seconds", "exactly", "roughly"),
    [
        (0, "0 s", "0 s"),
        (0.5, "0.5 s", "0 s"),
        (2786, "46 min 26 s", "46 min 26 s"),
        (3600, "1 h", "1 h"),
        (86_400 + 300, "1 d 5 min", "1 d"),
        (93_784, "1 d 2 h 3 min 4 s", "1 d 2 h"),
    ],
)
def test_people_read_durations_in_one_form(seconds: float, exactly: str, roughly: str) -> None:
    length = timedelta(seconds=seconds)
    assert describe_duration(length) == exactly
    assert describe_duration(length, units=2) == roughly


@pytest.mark.parametrize("text", ["-5GiB", " -1MiB", "-5GiB-8GiB"])
def test_a_negative_amount_is_called_that(text: str) -> None:
    with pytest.raises(BadAmount, match="is not an amount of memory: it is negative"):
        parse_memories(text)
