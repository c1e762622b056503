"""The trial of predictions on workloads: the plan is what backfill by time limits makes it, and scores are fair."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from benchmarks.backtest import judge
from benchmarks.hours import count_apart, predict_by_week, recall_hour
from benchmarks.run_times import judge as judge_runs
from benchmarks.scores import Score
from benchmarks.workloads import TracedJob, Workload, plan_starts, read_workload

from sublet.booking.model.estimate import Sample

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
HOUR, DAY = 3600.0, 86_400.0


def planned(*jobs: TracedJob, processors: int = 4) -> list[float]:
    return list(plan_starts(Workload(jobs, processors, BEGAN)))


def test_a_plan_waits_for_time_limits_and_lets_small_jobs_pass() -> None:
    jobs = (
        TracedJob(0, 0, 100, 3, 1000),  # runs with a limit of 1000
        TracedJob(10, 90, 50, 4, 500),  # needs all: planned for the limit
        TracedJob(20, 0, 50, 1, 900),  # fits beside the first, and ends before that limit
        TracedJob(30, 200, 50, 1, 5000),  # would keep the second waiting: after it
    )
    assert planned(*jobs) == [0, 1000, 20, 1500]


def test_a_trace_is_read_and_what_never_waited_or_ran_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "trace.swf"
    rest = "-1 " * 8
    lines = [
        "; UnixStartTime: 1767571200",
        "; MaxProcs: 64",
        f"1 0 5 60 8 -1 -1 8 30 -1 {rest}",
        f"2 9 -1 60 8 -1 -1 8 30 -1 {rest}",
        f"3 7 5 60 8 -1 -1 -1 90 -1 {rest}",
    ]
    file.write_text("\n".join(lines))
    assert read_workload(file) == Workload(
        (TracedJob(0, 5, 60, 8, 60, limit=30), TracedJob(7, 5, 60, 8, 90, limit=90)), 64, BEGAN
    )


def test_a_score_counts_errors_on_both_sides() -> None:
    score = Score()
    score.add((0, 10, 20), 15)
    score.add((0, 10, 20), 50)
    assert (score.count, score.error, score.inside) == (2, 45, 1)
    assert score.loss == pytest.approx(0.1 * 15 + 0.5 * 5 + 0.1 * 5 + 0.1 * 50 + 0.5 * 40 + 0.9 * 30)


def test_where_jobs_take_a_part_of_their_limits_the_prediction_beats_the_plan_and_the_last_week() -> None:
    """One machine that is served in turn: people ask for five times what they need, and more by day than by night."""
    random, jobs, free, time = Random(7), list[TracedJob](), 0.0, 0.0
    while time < 60 * DAY:
        busy = 8 <= time % DAY / HOUR < 20
        time += random.expovariate(1 / (0.9 * HOUR if busy else 3 * HOUR))
        run = random.uniform(0.2, 1.6) * HOUR
        start = max(free, time)
        jobs.append(TracedJob(time, start - time, run, 4, 5 * run))
        free = start + run
    scores = judge(Workload(tuple(jobs), 4, BEGAN), every=3)
    assert scores["sublet"].count > 150
    assert scores["sublet"].loss < scores["last week"].loss < scores["plan"].loss
    assert 0.75 < scores["sublet"].inside / scores["sublet"].count < 0.95, "many start at once"


def test_run_times_of_people_with_habits_beat_the_time_limit_and_the_last_week() -> None:
    """Two people whose programs take long and short, and who both ask for a day."""
    random, jobs = Random(3), list[TracedJob]()
    for number in range(600):
        person = number % 2
        run = random.lognormvariate(8 if person else 5, 0.3)
        jobs.append(TracedJob(number * HOUR, 0, run, 1, DAY, person, limit=DAY))
    scores, silent = judge_runs(Workload(tuple(jobs), 4, BEGAN))
    assert scores["sublet"].loss < scores["last week"].loss < scores["time limit"].loss
    assert 0.75 < scores["sublet"].inside / scores["sublet"].count < 0.95
    assert silent == 0


def test_nothing_is_said_of_people_with_few_runs() -> None:
    jobs = tuple(TracedJob(number * HOUR, 0, 60, 1, DAY, number, limit=DAY) for number in range(100))
    scores, silent = judge_runs(Workload(jobs, 4, BEGAN))
    assert scores["sublet"].count == 0
    assert silent > 60


def test_hours_of_the_week_are_apart_the_shorter_way_round() -> None:
    monday = BEGAN + timedelta(hours=1)
    assert count_apart(monday, monday + timedelta(days=14, hours=2)) == 2
    assert count_apart(monday, monday + timedelta(days=6, hours=23)) == 1
    assert count_apart(monday, monday + timedelta(days=3, hours=12)) == 84


def test_what_waits_on_mondays_alone_is_found_by_the_hour_of_the_week() -> None:
    """One start each hour for six weeks, planned alike; on Mondays each waits for an hour."""
    known = []
    for hour in range(6 * 168):
        at = BEGAN + timedelta(hours=hour)
        wait = timedelta(hours=1 if at.weekday() == 0 else 0)
        known.append(Sample("queue", 1, 4, at, at + wait, at, timedelta(hours=1)))
    monday, friday = (BEGAN + timedelta(days=42 + days, hours=12) for days in (0, 4))
    for method in (recall_hour, predict_by_week):
        on = [method(known, Sample("queue", 1, 4, at, at, at, timedelta(hours=1))) for at in (monday, friday)]
        assert on == [(HOUR,) * 3, (0.0,) * 3]
