"""Predicted starts: what the record says, and what is said without one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.estimate import ENOUGH, RECENT, Prediction, Sample, Track, predict, size_class, tracks

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

lateness = st.integers(-2 * 86_400, 7 * 86_400).map(lambda seconds: timedelta(seconds=seconds))
recent = st.integers(0, RECENT.days).map(lambda days: timedelta(days=days))
plans = st.integers(-3600, 14 * 86_400).map(lambda seconds: NOW + timedelta(seconds=seconds))


def sample(late: timedelta, ago: timedelta = HOUR, queue: str = "normal", nodes: int = 2) -> Sample:
    at = NOW - ago
    return Sample(queue, nodes, 4, at, at + late, at)


samples = st.lists(st.builds(sample, lateness, recent), max_size=60)


def predicted(samples: list[Sample], planned: datetime = NOW + HOUR) -> Prediction:
    return predict(samples, "normal", "2-4 nodes", planned, NOW)


@given(samples, plans)
def test_the_three_are_in_order_and_never_before_now(samples: list[Sample], planned: datetime) -> None:
    found = predicted(samples, planned)
    assert NOW <= found.p10 <= found.p50 <= found.p90


@given(samples, plans, st.randoms())
def test_the_order_of_samples_does_not_matter(samples: list[Sample], planned: datetime, random: Random) -> None:
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert predicted(shuffled, planned) == predicted(samples, planned)


@given(samples, st.lists(st.builds(sample, lateness, st.integers(91, 900).map(lambda days: timedelta(days=days)))))
def test_old_samples_are_ignored(samples: list[Sample], old: list[Sample]) -> None:
    assert predicted(samples + old) == predicted(samples)


@given(
    samples,
    st.lists(st.builds(sample, lateness, recent, st.just("debug")) | st.builds(sample, lateness, nodes=st.just(9))),
)
def test_other_queues_and_sizes_say_nothing(samples: list[Sample], others: list[Sample]) -> None:
    assert predicted(samples + others) == predicted(samples)


@given(st.lists(st.builds(sample, lateness, recent), min_size=ENOUGH, max_size=60), plans, lateness)
def test_who_was_later_is_predicted_later(samples: list[Sample], planned: datetime, late: timedelta) -> None:
    more = [Sample(s.queue, s.nodes, s.cores, s.planned, s.actual + abs(late), s.at) for s in samples]
    assert predicted(more, planned).p50 >= predicted(samples, planned).p50


def planned_for(wait: timedelta, waited: timedelta, length: timedelta = HOUR, ago: timedelta = DAY) -> Sample:
    """A job whose plan was to wait so long, and that did wait so long."""
    at = NOW - ago
    return Sample("normal", 2, 4, at + wait, at + waited, at, length)


def test_with_a_record_it_waits_as_those_did_whose_plan_was_most_like_it() -> None:
    alike = [planned_for(HOUR, timedelta(minutes=minutes)) for minutes in range(51)]
    others = [planned_for(9 * HOUR, 5 * HOUR)] * 200
    found = predicted([*alike, *others])
    assert (found.p10, found.p50, found.p90) == tuple(NOW + timedelta(minutes=wait) for wait in (4.9, 24.5, 44.1))
    assert (found.samples, found.track) == (251, "251 starts in 90 days")


def test_jobs_of_like_length_count_more_than_others() -> None:
    samples = [planned_for(HOUR, 3 * HOUR, 48 * HOUR)] * 60 + [planned_for(HOUR, HOUR / 6, HOUR / 6)] * 60
    short = predict(samples, "normal", "2-4 nodes", NOW + HOUR, NOW, HOUR / 6)
    long = predict(samples, "normal", "2-4 nodes", NOW + HOUR, NOW, 48 * HOUR)
    assert (short.p50, long.p50) == (NOW + HOUR / 6, NOW + 3 * HOUR)


def test_where_plan_and_length_are_alike_the_hour_of_the_day_decides() -> None:
    noon = [planned_for(HOUR, 2 * HOUR, ago=day * DAY) for day in range(1, 51)]
    night = [planned_for(HOUR, HOUR / 4, ago=day * DAY - 12 * HOUR) for day in range(1, 51)]
    assert predicted(noon + night).p50 == NOW + 2 * HOUR


def test_a_wait_is_counted_from_the_time_that_was_asked_for() -> None:
    samples = [planned_for(HOUR / 4, HOUR / 2)] * ENOUGH
    tomorrow = NOW + DAY
    found = predict(samples, "normal", "2-4 nodes", tomorrow + HOUR / 4, NOW, HOUR, tomorrow)
    assert found.p50 == tomorrow + HOUR / 2


def test_plans_that_were_too_late_are_corrected_too() -> None:
    found = predicted([planned_for(HOUR, HOUR / 2)] * ENOUGH)
    assert found.p10 == found.p90 == NOW + HOUR / 2


def test_under_twenty_samples_there_is_no_track_record_and_the_plan_stands() -> None:
    found = predicted([sample(9 * HOUR)] * (ENOUGH - 1), NOW + 3 * HOUR)
    assert (found.p10, found.p50, found.p90) == (NOW, NOW + 3 * HOUR, NOW + 6 * HOUR)
    assert found.samples == 19
    assert found.track == "no track record: 19 of the 20 starts that make one"


def test_without_a_record_there_is_an_hour_of_doubt_at_least() -> None:
    found = predicted([], NOW - HOUR)
    assert (found.p10, found.p50, found.p90) == (NOW, NOW, NOW + HOUR)
    assert found.track == "no track record: no start of this kind was seen"


@pytest.mark.parametrize(
    ("nodes", "cores", "name"),
    [
        (1, 1, "1 node, up to 8 cores"),
        (1, 8, "1 node, up to 8 cores"),
        (1, 9, "1 node"),
        (2, 1, "2-4 nodes"),
        (4, 128, "2-4 nodes"),
        (5, 1, "5-16 nodes"),
        (64, 1, "17-64 nodes"),
        (256, 1, "65-256 nodes"),
        (9000, 1, "over 256 nodes"),
    ],
)
def test_jobs_that_wait_alike_are_one_class(nodes: int, cores: int, name: str) -> None:
    assert size_class(nodes, cores) == name


def test_the_record_has_each_queue_and_size_and_percentiles_where_there_are_enough() -> None:
    enough = [sample(timedelta(minutes=minutes), queue="long") for minutes in range(101)]
    few = [sample(HOUR, nodes=1)] * (ENOUGH - 1)
    old = [sample(HOUR, ago=RECENT + HOUR, queue="gone")]
    ten, fifty, ninety = (timedelta(minutes=minutes) for minutes in (10, 50, 90))
    assert tracks([*enough, *old, *few], NOW) == (
        Track("long", "2-4 nodes", 101, ten, fifty, ninety),
        Track("normal", "1 node, up to 8 cores", 19),
    )
