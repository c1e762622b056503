"""How long a session will run, as earlier runs of the program did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.run_time import (
    ENOUGH,
    MOST_DOUBT,
    Run,
    RunEstimate,
    RunHistory,
    describe_range,
    find_doubt,
    find_percentile,
    make_history,
)

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def run(minutes: float, platform: str = "here", queue: str = "", size: int = 1, limit: float = 60) -> Run:
    return Run(minutes * 60, 0, 0, platform, queue, size, limit * 60)


def test_it_is_said_what_the_last_runs_took_and_by_when_the_next_is_likely_over() -> None:
    history = RunHistory(tuple(run(12 + number % 8) for number in range(34)), "sim.py")
    estimate = history.estimate("here", "", 1, HOUR)
    assert estimate is not None
    assert estimate.describe() == "12 to 19 min, by your last 34 runs of sim.py"
    assert estimate.find_end(NOON) == NOON + 19 * MINUTE


def test_too_few_runs_say_nothing() -> None:
    assert make_history([run(10)] * (ENOUGH - 1), "sim.py").estimate("here", "", 1, HOUR) is None
    assert make_history([run(10)] * ENOUGH, "sim.py").estimate("here", "", 1, HOUR) is not None


def test_runs_of_the_same_platform_size_and_time_limit_count_first() -> None:
    quick = [run(5, "fast", "short", 16, 10)] * 30
    slow = [run(50, "slow", "long", 2, 120)] * 30
    history = make_history([run for pair in zip(quick, slow, strict=True) for run in pair], "sim.py")
    there, elsewhere = history.estimate("fast", "short", 16, 10 * MINUTE), history.estimate("slow", "long", 2, 2 * HOUR)
    assert there is not None
    assert elsewhere is not None
    assert (there.likely, elsewhere.likely) == (5 * MINUTE, 50 * MINUTE)


def test_nothing_runs_longer_than_it_is_allowed() -> None:
    estimate = make_history([run(50)] * 10, "sim.py").estimate("here", "", 1, 20 * MINUTE)
    assert estimate is not None
    assert estimate.high == 20 * MINUTE


def test_where_earlier_predictions_were_off_the_spread_is_wider() -> None:
    steady, jumping = [run(10)] * 40, [run(10 if number // 8 % 2 else 40) for number in range(40)]
    assert find_doubt(steady) == 1
    assert 1 <= find_doubt(jumping) <= MOST_DOUBT
    drifting = [run(2 ** (number / 4)) for number in range(40)]
    assert find_doubt(drifting) > 1.3


def test_eight_of_ten_are_inside_where_runs_come_from_one_distribution() -> None:
    random, inside = Random(5), 0
    for _ in range(400):
        took = [random.lognormvariate(5, 1) for _ in range(13)]
        estimate = RunHistory(tuple(Run(wall) for wall in took[:-1])).estimate("", "", 1, 1000 * HOUR)
        assert estimate is not None
        inside += estimate.low.total_seconds() <= took[-1] <= estimate.high.total_seconds()
    assert 0.75 < inside / 400 < 0.86


@given(st.lists(st.floats(0.1, 1e6), min_size=ENOUGH, max_size=60), st.integers(1, 10_000))
def test_the_spread_is_in_order_and_within_the_limit(walls: list[float], minutes: int) -> None:
    estimate = make_history([Run(wall) for wall in walls], "x").estimate("here", "", 4, minutes * MINUTE)
    assert estimate is not None
    assert timedelta(0) <= estimate.low <= estimate.likely <= estimate.high <= minutes * MINUTE


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 1))
def test_a_percentile_is_between_the_least_and_the_most(values: list[float], part: float) -> None:
    values.sort()
    assert values[0] <= find_percentile(values, part) <= values[-1] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (12 * MINUTE, 19 * MINUTE, "12 to 19 min"),
        (timedelta(seconds=0.2), timedelta(seconds=0.4), "under 1 s"),
        (timedelta(seconds=0.2), timedelta(seconds=4.5), "under 1 s to 5 s"),
        (timedelta(seconds=40), HOUR + 20 * MINUTE, "40 s to 1 h 20 min"),
        (HOUR + 20 * MINUTE, 2 * HOUR + 20 * MINUTE, "1 h 20 min to 2 h 20 min"),
        (2 * HOUR, 26 * HOUR, "2 h to 1 d"),
    ],
)
def test_a_range_reads_as_a_person_says_it(low: timedelta, high: timedelta, words: str) -> None:
    assert describe_range(low, high) == words


def test_runs_of_others_are_not_called_ones_own() -> None:
    estimate = RunEstimate(MINUTE, MINUTE, 2 * MINUTE, 40, "flood", "all")
    assert estimate.describe() == "1 to 2 min, by everybody's last 40 runs of flood"
