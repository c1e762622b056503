"""What people used, by quarter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.access.model.usage import Ran, parse_quarter, quarter_of, report
from sublet.kernel.errors import BadRequest

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ONE = Ran("s1", "ann@example.org", "keeling", NEW_YEAR - HOUR, NEW_YEAR + 2 * HOUR, 2, 8, 1)
LONG = (NEW_YEAR - timedelta(days=400), NEW_YEAR + timedelta(days=400))


@pytest.mark.parametrize(("month", "quarter"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (9, 3), (10, 4), (12, 4)])
def test_a_quarter_has_three_months(month: int, quarter: int) -> None:
    name = quarter_of(datetime(2026, month, 28, tzinfo=UTC))
    assert name == f"2026Q{quarter}"
    start, end = parse_quarter(name)
    assert start <= datetime(2026, month, 28, tzinfo=UTC) < end
    assert quarter_of(end - timedelta(microseconds=1)) == name
    assert quarter_of(end) != name


@pytest.mark.parametrize("text", ["", "2026", "2026Q5", "Q4", "26Q1", "2026Q44"])
def test_what_is_no_quarter_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_quarter(text)


def test_a_session_counts_in_each_quarter_with_its_part_of_the_time() -> None:
    rows = report([ONE], *LONG, NEW_YEAR + 10 * HOUR)
    assert [(r.quarter, r.sessions, r.node_hours, r.core_hours, r.gpu_hours) for r in rows] == [
        ("2026Q4", 1, 2, 8, 1),
        ("2027Q1", 1, 4, 16, 2),
    ]
    only = report([ONE], *parse_quarter("2027Q1"), NEW_YEAR + 10 * HOUR)
    assert [(r.quarter, r.core_hours) for r in only] == [("2027Q1", 16)]


def test_what_runs_counts_until_now() -> None:
    rows = report([replace(ONE, ended=None, started=NEW_YEAR)], *LONG, NEW_YEAR + HOUR)
    assert [(r.sessions, r.running, r.core_hours) for r in rows] == [(1, 1, 8)]


def test_each_person_and_platform_has_a_line() -> None:
    others = [replace(ONE, session="s2"), replace(ONE, session="s3", person="bob@example.org")]
    rows = report([ONE, *others, replace(ONE, session="s4", platform="anvil")], *parse_quarter("2027Q1"), NEW_YEAR)
    assert [(r.platform, r.person, r.sessions) for r in rows] == [
        ("anvil", "ann@example.org", 1),
        ("keeling", "ann@example.org", 2),
        ("keeling", "bob@example.org", 1),
    ]


def test_a_session_that_ended_as_it_began_is_a_session() -> None:
    rows = report([replace(ONE, started=NEW_YEAR, ended=NEW_YEAR)], *LONG, NEW_YEAR + HOUR)
    assert [(r.sessions, r.core_hours) for r in rows] == [(1, 0)]
