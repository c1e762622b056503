"""What earlier runs of a program say of the next request."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.archive.model.habits import ENOUGH, find_habits, label_of, quantile
from sublet.booking.model.amounts import parse_count, parse_duration, parse_memory
from sublet.booking.model.request import GIB, Compute, Executable, Range, Request
from sublet.booking.model.run_time import Run

HOUR = timedelta(hours=1)


def asked(memory: int = 8 * GIB, cores: int = 8, time: timedelta = 4 * HOUR) -> Request:
    compute = Compute(cores=Range.exactly(cores), memory=Range.exactly(memory))
    return Request(Executable("command", "sim"), compute, duration=time)


def hints(runs: list[Run], request: Request | None = None) -> dict[str, Any]:
    return {hint.field: hint for hint in find_habits(runs, "sim", request or asked())}


@pytest.mark.parametrize(
    ("executable", "label"),
    [
        (Executable("command", "", {"argv": ["python3", "-u", "src/sim.py", "7"]}), "command sim.py"),
        (Executable("command", "", {"argv": ["/opt/solver"]}), "command solver"),
        (Executable("command", "", {"argv": ["python3"]}), "command python3"),
        (Executable("command", "true 7", {"argv": ["true", "7"]}), "command true"),
        (Executable("command", "flood.sh", {"script": "echo"}), "command flood.sh"),
        (Executable("jupyter-notebook", "", {"location": "file:///x/a.ipynb"}), "jupyter-notebook file:///x/a.ipynb"),
        (Executable("docker-container", "", {"image": {"locations": ["a/b:1@sha256:00"]}}), "docker-container a/b:1"),
        (Executable("app", "my run", {"app": "flood@3"}), "app flood"),
        (None, ""),
    ],
)  # fmt: skip
def test_a_program_is_known_by_what_stays_the_same(executable: Executable | None, label: str) -> None:
    assert label_of(executable) == label


def test_runs_that_used_little_say_how_much_would_do() -> None:
    runs = [Run(600 + n, 1.1, 2 * GIB + n) for n in range(34)]
    found = hints(runs)
    assert found["memory"].message == "80 % of your 34 runs of sim used under 2.5GiB of 8GiB of memory."
    assert found["memory"].nearest == "2.5GiB"
    assert found["time"].message == "80 % of your 34 runs of sim took under 10 min 27 s of 4 h."
    assert found["time"].nearest == "15m"
    assert found["cores"].message == "80 % of your 34 runs of sim kept under 1.1 of 8 cores busy."
    assert found["cores"].nearest == "2"


def test_a_program_that_hardly_works_is_not_told_to_use_no_cores() -> None:
    message = hints([Run(600, 0.01, 0)] * ENOUGH)["cores"].message
    assert message == f"80 % of your {ENOUGH} runs of sim kept under 0.1 of 8 cores busy."


def test_one_run_that_needed_much_keeps_the_advice_above_it() -> None:
    runs = [Run(60, 1, GIB)] * 30 + [Run(3 * 3600, 7.5, 7 * GIB)]
    assert hints(runs) == {}, "what one of them needed is not taken from the next"


def test_too_few_runs_and_what_was_not_measured_say_nothing() -> None:
    assert hints([Run(1, 0.1, 1)] * (ENOUGH - 1)) == {}
    assert set(hints([Run(600, 0, 0)] * ENOUGH)) == {"time"}


@given(
    st.lists(st.builds(Run, st.floats(0.1, 1e6), st.floats(0, 64), st.integers(0, 1 << 40)), min_size=1, max_size=60),
    st.integers(1, 64),
    st.integers(1 << 20, 1 << 40),
    st.integers(1, 10_000),
)
def test_advice_is_enough_for_every_run_and_less_than_was_asked(
    runs: list[Run], cores: int, memory: int, minutes: int
) -> None:
    request = asked(memory, cores, timedelta(minutes=minutes))
    for field, hint in hints(runs, request).items():
        if field == "memory":
            assert max(run.peak_memory for run in runs) <= parse_memory(hint.nearest) < memory
        if field == "time":
            assert max(run.wall for run in runs) <= parse_duration(hint.nearest).total_seconds() < minutes * 60
        if field == "cores":
            assert max(run.cores for run in runs) <= parse_count(hint.nearest) < cores


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 1))
def test_a_quantile_is_between_the_least_and_the_most(values: list[float], part: float) -> None:
    values.sort()
    assert values[0] <= quantile(values, part) <= values[-1] * (1 + 1e-9)
