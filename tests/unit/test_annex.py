"""Names of annexes and leases, and details out of several sources."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from sublet.annexes.model.annex import Details, Lease, Line, Named, choose_leases, fill_details, parse_named
from sublet.kernel.errors import BadName


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("example", Named("example")),
        ("example#3", Named("example", number=3)),
        ("my-annex_2.b@2026-11-14", Named("my-annex_2.b", day=date(2026, 11, 14))),
    ],
)
def test_a_name_names_an_annex_or_a_lease(text: str, named: Named) -> None:
    assert parse_named(text) == named


@pytest.mark.parametrize(
    "text", ["", "-x", "3x", "a b", "a;b", "a#", "a#0", "a#-1", "a#x", "a#²", "a@", "a@yesterday", "a#1@2", "x" * 64]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadName):
        parse_named(text)


def test_a_lease_is_chosen_by_number_or_day() -> None:
    days = [datetime(2026, 11, 13, 23, tzinfo=UTC), datetime(2026, 11, 14, tzinfo=UTC)]
    first, second = (Lease(f"l{n}", "a", n, Details(), day) for n, day in enumerate(days, 1))
    assert choose_leases(Named("x"), [first, second]) == [first, second]
    assert choose_leases(Named("x", number=2), [first, second]) == [second]
    assert choose_leases(Named("x", day=date(2026, 11, 13)), [first, second]) == [first]


def test_the_first_source_that_says_something_wins_and_is_named() -> None:
    mine, template = Details(nodes=0, queue="debug"), Details("expanse", "compute", nodes=4, idle=timedelta(0))
    details, lines = fill_details([("you", mine), ("template big", template)])
    assert details == Details("expanse", "debug", nodes=0, idle=timedelta(0))
    assert lines == (
        Line("system", "expanse", "template big"),
        Line("queue", "debug", "you"),
        Line("nodes", 0, "you"),
        Line("idle", timedelta(0), "template big"),
    )
