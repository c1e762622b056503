"""The operator's price list becomes quotes in IVOA's words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.booking.model.intensity import Intensity, read_intensity
from sublet.booking.model.offer import Quote
from sublet.booking.model.prices import CARBON, ENERGY, MONETARY, PriceChange, PricePeriod, Prices, Tariff
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


NIGHT = PricePeriod("daily 19:00-07:00 UTC", 0.5)
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ONE = Amounts(Shape(1, GIB), 1, HOUR)


def money(prices: Prices, start: datetime | None, amounts: Amounts = ONE) -> float:
    return prices.bill(amounts, {}, start).total[0].max


def test_an_hour_that_counts_less_costs_less_and_each_part_of_the_time_by_its_own() -> None:
    prices = Prices(core_hour=2, hours=(NIGHT,))
    assert [money(prices, NOON + n * HOUR) for n in (0, 6, 7, 18, 19)] == [2, 2, 1, 1, 2]
    assert money(prices, NOON + 6.5 * HOUR) == 1.5
    assert money(prices, NOON, replace(ONE, time=24 * HOUR)) == 36
    assert money(prices, None) == 1, "without a start, the least that it can cost"


def test_the_first_period_that_a_time_is_in_counts() -> None:
    weekend = PricePeriod("weekend 00:00-23:59 UTC", 3)
    prices = Prices(core_hour=1, hours=(weekend, NIGHT))
    saturday = NOON + timedelta(days=4)
    assert (money(prices, saturday), money(prices, saturday + 8 * HOUR)) == (3, 3)


def test_periods_follow_the_clock_of_their_zone_in_summer_and_winter() -> None:
    prices = Prices(core_hour=1, hours=(PricePeriod("daily 19:00-20:00 Europe/Berlin", 0),))
    summer, winter = datetime(2026, 7, 1, 17, tzinfo=UTC), datetime(2026, 12, 1, 18, tzinfo=UTC)
    assert (money(prices, summer), money(prices, winter)) == (0, 0)
    assert (money(prices, summer + HOUR), money(prices, winter - HOUR)) == (1, 1)


@pytest.mark.parametrize("when", ["tomorrow 9am", "soon", "daily 25:00-26:00"])
def test_a_period_that_does_not_come_again_is_a_mistake(when: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        PricePeriod(when, 0.5)


def test_a_platform_and_a_pledge_have_prices_of_their_own_and_what_draws_on_both_pays_by_their_parts() -> None:
    prices = Prices(
        core_hour=1,
        memory_gib_hour=1,
        platforms={"big": PriceChange(core_hour=3, currency="USD")},
        pledges={"srcnet": PriceChange(core_hour=0)},
    )
    assert (prices.at("here").core_hour, prices.at("big").core_hour, prices.at("big").memory_gib_hour) == (1, 3, 1)
    assert prices.at("big").bill(ONE, {}).total[0].description == "in USD"
    assert prices.at("here", {"srcnet": 100}).core_hour == 0
    assert prices.at("big", {"open": 50, "srcnet": 150}).core_hour == 0.75
    assert prices.at("big", {"open": 50}).core_hour == 3


def test_carbon_is_energy_by_the_intensity_of_its_hours() -> None:
    hours = {NOON: 100.0, NOON + HOUR: 300.0}
    tariff = Tariff(Prices(core_hour_energy=0.01, gpu_hour_energy=0.3), Intensity(hours, {12: 50.0}))
    amounts = Amounts(Shape(10, GIB, 1), 1, 2 * HOUR)
    quotes = {quote.type: quote.max for quote in tariff.bill(amounts, {}, NOON).total}
    assert (quotes[ENERGY], quotes[CARBON]) == (0.8, 160)
    assert tariff.is_by_hour
    assert Tariff(Prices(core_hour_carbon=3)).bill(ONE, {}, NOON).total[1] == Quote(CARBON, 3, 3, "in grams of CO2")


@pytest.mark.parametrize(
    "text",
    [
        "time,grams\n2026-11-17T12:00:00Z,100\n2026-11-17T13:00+00:00,300\n",
        '{"data": [{"from": "2026-11-17T12:00Z", "intensity": {"forecast": 1, "actual": 80}}, '
        '{"from": "2026-11-17T12:30Z", "intensity": {"forecast": 120, "actual": null}}, '
        '{"from": "2026-11-17T13:00Z", "intensity": {"forecast": 300}}]}',
        '{"forecast": [{"datetime": "2026-11-17T12:00:00.000Z", "carbonIntensity": 100}, '
        '{"datetime": "2026-11-17T13:00:00.000Z", "carbonIntensity": 300}]}',
        "12,100\n13,300\n",
    ],
)
def test_an_intensity_is_read_as_files_and_grids_write_it(text: str) -> None:
    intensity = read_intensity(text)
    assert (intensity.at(NOON), intensity.at(NOON + 1.9 * HOUR)) == (100, 300)
    assert intensity.mean(NOON + 0.5 * HOUR, HOUR) == 200
    assert intensity.at(NOON + timedelta(days=9)) == 100, "an hour that is not known is as that of other days"
    assert intensity.at(NOON + 5 * HOUR) == 200
    assert intensity.least == 100


@pytest.mark.parametrize("text", ["", "[]", '{"data": [{"x": 1}]}', "12,100\nsoon,3\n", "12,-5\n", "30,5\n31,5", "[3]"])
def test_an_intensity_that_says_nothing_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_intensity(text)
