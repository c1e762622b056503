"""Budgets as values: what is typed, whom they are about, and which period it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.access.model.access import Who
from sublet.access.model.budget import Budget, parse_budget
from sublet.access.model.budget_words import find_excess
from sublet.booking.model.offer import Offer, Quote
from sublet.booking.model.prices import ENERGY, MONETARY
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import BadAmount, BadRequest

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
ANNA = Who(frozenset({"anna@x.org"}), frozenset({"lab"}), ("anna@x.org",))
OFFER = Offer("site", "sh", NOW, NOW, timedelta(hours=2), ("a",), Shape(4, 0), costs=(Quote(MONETARY, 3, 3),))


def budget(holder: str = "anna@x.org", **more: Any) -> Budget:
    values = {"measure": "money", "amount": 10.0, "period": "month", "created": NOW, **more}
    return Budget("1", holder, **values)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("500EUR", (500.0, "money")),
        ("0.5 EUR", (0.5, "money")),
        ("1000 core-hours", (1000.0, "core-hours")),
        ("20kWh", (20.0, "energy")),
        ("2 MWh", (2000.0, "energy")),
        ("5kg", (5000.0, "carbon")),
    ],
)
def test_an_amount_has_a_unit(typed: str, meant: tuple[float, str]) -> None:
    assert parse_budget(typed, "EUR") == meant


@pytest.mark.parametrize("typed", ["", "500", "EUR", "-5EUR", "5 USD", "1e9EUR", "5 EUR 3", "nan kWh", "٥EUR"])
def test_what_is_no_amount_here_is_refused_with_what_would_be(typed: str) -> None:
    with pytest.raises(BadAmount, match="EUR"):
        parse_budget(typed, "EUR")


@pytest.mark.parametrize(
    ("holder", "project", "is_about"),
    [
        ("anna@x.org", "", True),
        ("*@x.org", "", True),
        ("*@y.org", "", False),
        ("group:lab", "", True),
        ("group:other", "", False),
        ("project:flood", "flood", True),
        ("project:flood", "", False),
        ("project:flood", "floods", False),
        ("project:*", "flood", False),
    ],
)
def test_a_budget_is_about_people_their_groups_or_what_is_charged_to_a_project(
    holder: str, project: str, is_about: bool
) -> None:
    assert budget(holder).is_about(ANNA, project, "site", NOW) is is_about


def test_a_budget_may_count_on_one_platform_and_until_a_day() -> None:
    assert not budget(platform="other").is_about(ANNA, "", "site", NOW)
    assert not budget(until=NOW).is_about(ANNA, "", "site", NOW)
    assert budget(platform="site", until=NOW + timedelta(seconds=1)).is_about(ANNA, "", "site", NOW)


def test_a_period_is_of_the_calendar_and_in_total_begins_with_the_budget() -> None:
    begins = {period: budget(period=period).begin(NOW) for period in ("month", "quarter", "year", "total")}
    assert begins == {
        "month": datetime(2026, 11, 1, tzinfo=UTC),
        "quarter": datetime(2026, 10, 1, tzinfo=UTC),
        "year": datetime(2026, 1, 1, tzinfo=UTC),
        "total": NOW,
    }
    assert budget(period="quarter").begin(datetime(2026, 12, 31, 23, tzinfo=UTC)).month == 10


def test_what_an_offer_takes_is_what_it_states() -> None:
    assert budget().charge_of(OFFER) == 3
    assert budget().charge_of(replace(OFFER, costs=())) == 0, "without a price it is free"
    assert budget(measure="core-hours").charge_of(OFFER) == 8
    assert budget(measure="energy").charge_of(OFFER) is None
    assert budget(measure="energy").charge_of(replace(OFFER, costs=(Quote(ENERGY, 1, 2),))) == 2


def test_what_is_not_stated_does_not_fit_and_what_fits_exactly_does() -> None:
    unknown = find_excess(budget("group:lab", measure="energy"), None, 0, "site", "EUR")
    assert unknown
    assert (
        unknown.message
        == "site doesn't state its energy, so the group lab's budget of 10 kWh a month can't be kept there."
    )
    assert find_excess(budget(), 4, 6, "site", "EUR") is None
    over = find_excess(budget(), 4.5, 6, "site", "EUR")
    assert over
    assert over.message == "Your budget is 10 EUR a month; 4 EUR are left, and this needs 4.5 EUR."


@pytest.mark.parametrize(
    "wrong", [{"amount": -1.0}, {"amount": float("nan")}, {"measure": "time"}, {"period": "day"}, {"platform": ""}]
)
def test_what_could_bound_nothing_is_not_made(wrong: dict[str, Any]) -> None:
    with pytest.raises((BadAmount, BadRequest)):
        budget(**wrong)
    with pytest.raises(BadRequest):
        budget("group:")
