"""Hints on when: another hour that starts sooner or costs less, and how much sooner less would start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sublet.booking.model.better_starts import StartAdviser
from sublet.booking.model.offer import HINT, Offer, Reason
from sublet.booking.model.prices import PricePeriod, Prices, Tariff
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.shape import Shape

HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
EVENING = Window(NOON + 9 * HOUR, NOON + 12 * HOUR)
FREE, NIGHTS = Tariff(Prices()), Tariff(Prices(core_hour=1, hours=(PricePeriod("daily 19:00-20:30 UTC", 0.7),)))
LESS = Reason(HINT, "time", "80 % of your 34 runs of sim took under 10 min of 4 h.", "4 h", "10 min", "15m")


def asked(*windows: Window) -> Request:
    return Request(Executable("command", "sim"), Compute(cores=Range(1, 1)), duration=HOUR, windows=windows)


def advise(
    start: datetime,
    request: Request,
    room: Mapping[str, datetime],
    prices: Tariff = FREE,
    *hints: Reason,
    also: datetime | None = None,
) -> list[Reason]:
    """`room` says from when on there is room: without a window, in one that begins then, or with less."""

    def search(changed: Request) -> datetime | None:
        if changed.duration < HOUR:
            return room.get("less")
        return room.get(f"{changed.windows[0].start:%H:%M}") if changed.windows else room.get("any")

    best = Offer("here", "exec", start, start, HOUR, ("n1",), Shape(1, 1))
    others = [replace(best, start=also, latest_start=also)] if also else []
    return StartAdviser([best, *others], request, prices, search).advise(hints, NOON)


def test_an_earlier_hour_with_room_starts_sooner_and_costs_less() -> None:
    at_seven = NOON + 7 * HOUR
    [hint] = advise(NOON + 11 * HOUR, asked(EVENING), {"any": at_seven, "19:00": at_seven}, NIGHTS)
    assert hint.message == "From 2026-11-17 19:00 UTC on it would start 4 h sooner, and cost 30 % less."
    assert (hint.field, hint.nearest) == ("start", "2026-11-17T19:00:00Z/PT6H")


def test_who_gets_the_time_that_was_asked_for_is_not_told_to_come_earlier() -> None:
    assert advise(EVENING.start, asked(EVENING), {"any": NOON}) == []
    assert advise(NOON, asked(), {"any": NOON}) == []


def test_an_earlier_hour_that_costs_more_is_no_hint() -> None:
    late = NOON + 31 * HOUR  # tomorrow at 19:00, for less
    assert advise(late, asked(Window(NOON + 24 * HOUR, late + HOUR)), {"any": NOON}, NIGHTS) == []


def test_a_cheaper_hour_is_a_hint_only_where_there_is_room_then() -> None:
    [hint] = advise(NOON, asked(), {"19:00": NOON + 7 * HOUR}, NIGHTS)
    assert hint.message == "From 2026-11-17 19:00 UTC on it would cost 30 % less."
    assert advise(NOON, asked(), {}, NIGHTS) == [], "no room"
    night = NOON + 7 * HOUR
    assert advise(NOON, asked(), {"19:00": night}, NIGHTS, also=night) == [], "it is among the offers already"
    assert advise(NOON, asked(), {"19:00": NOON + 10 * HOUR}, NIGHTS) == [], "room when it costs the same again"


def test_asking_for_less_says_how_much_sooner_it_would_start() -> None:
    [hint] = advise(NOON + 2 * HOUR, asked(), {"less": NOON}, FREE, LESS)
    assert hint.message.endswith("of 4 h. With less it would start 2 h sooner.")
    assert advise(NOON + 2 * HOUR, asked(), {"less": NOON + 2 * HOUR}, FREE, LESS) == [LESS]
    assert advise(NOON, asked(), {"less": NOON}, FREE, LESS) == [LESS], "it starts now"
