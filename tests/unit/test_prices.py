"""The operator's price list becomes quotes in IVOA's words."""

from datetime import timedelta

import pytest

from sublet.booking.model.offer import Quote
from sublet.booking.model.prices import CARBON, ENERGY, MONETARY, Prices
from sublet.booking.model.request import GIB
from sublet.booking.model.shape import Amounts, Shape


def test_a_quote_adds_cores_memory_gpus_and_storage_for_the_whole_time() -> None:
    prices = Prices(core_hour=1, memory_gib_hour=0.5, gpu_hour=10, storage_gib_hour=0.1, currency="GBP")
    quotes = prices.quote(Amounts(Shape(2, 4 * GIB, 1), 3, timedelta(hours=2)), storage=10 * GIB)
    assert quotes == (Quote(MONETARY, 86, 86, "in GBP"),)


def test_what_has_no_price_is_free_and_says_so() -> None:
    assert Prices().quote(Amounts(Shape(2, GIB), 1, timedelta(hours=2))) == (Quote(MONETARY, 0, 0, "in EUR"),)


def test_energy_and_carbon_are_quoted_where_the_operator_knows_them() -> None:
    prices = Prices(core_hour_energy=0.01, core_hour_carbon=3)
    quotes = {quote.type: quote.max for quote in prices.quote(Amounts(Shape(4, GIB), 2, timedelta(minutes=30)))}
    assert quotes == {MONETARY: 0, ENERGY: 0.04, CARBON: 12}


@pytest.mark.parametrize("price", [-1, float("nan"), float("inf")])
def test_a_price_below_nothing_is_a_mistake(price: float) -> None:
    with pytest.raises(ValueError, match="price"):
        Prices(core_hour=price)
