"""Every benchmark runs, at a hundredth of its size: what is published can be measured again."""

from __future__ import annotations

import json
import os
import re

import pytest
from benchmarks.__main__ import list_benchmarks
from benchmarks.page import PAGE, ROOT, read_sections

from tests.nursery import typed


@pytest.mark.parametrize("name", [*list_benchmarks(), pytest.param("split", marks=pytest.mark.soak), "store"])
def test_a_benchmark_runs_to_its_end_and_measures_what_the_page_shows(name: str, swept: None) -> None:
    done = typed([name], os.environ, directory=ROOT, program="tests.real.benchmark_rows", timeout=300)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    if rows[0][0] == "not measured":
        pytest.skip(rows[0][1])
    assert all(figure for _, figure, _, _ in rows)
    if section := read_sections(PAGE.read_text()).get(name):
        published = without_numbers(section)
        goals = [without_numbers(what) for what, _, goal, _ in rows if goal]
        assert [what for what in goals if f"| {what} |" not in published] == []


def without_numbers(text: str) -> str:
    """A small run has the same rows, of fewer things."""
    return re.sub(r"[\d,]*\d", "N", text)
