"""Starts within the asker's cost limits, where prices depend on the hour; and hours that cost less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.limits import check_costs
from sublet.booking.model.offer import Offer
from sublet.booking.model.prices import MONETARY, Bill, PriceQuoter
from sublet.booking.model.request import Request, Window
from sublet.booking.model.windows import windows_of

STEP = timedelta(minutes=30)
AHEAD = timedelta(days=7)  # how far ahead starts are tried
SOON = timedelta(days=1)  # how far ahead a cheaper hour is worth a hint
WORTH = 0.9  # a saving of less than a tenth is not worth a hint


def keep_affordable(
    request: Request, price: Callable[[datetime], Bill], platform: str, now: datetime, horizon: timedelta
) -> Request:
    """Limit a request to start times that its cost limits allow; return it unchanged if there are none."""
    until = min(horizon, AHEAD)
    asked = windows_of(request, now, until) if request.windows or request.recurring else (Window(now, now + until),)
    windows: list[Window] = []
    for window in asked:
        windows += _find_affordable(request, price, platform, max(window.start, now), min(window.end, now + until))
    return replace(request, windows=tuple(windows), recurring=()) if windows else request


def _find_affordable(
    request: Request, price: Callable[[datetime], Bill], platform: str, start: datetime, end: datetime
) -> list[Window]:
    """Return the windows of affordable starts, in steps of half an hour."""
    runs: list[Window] = []
    time = start
    while time < end or time == start:
        following = min(_next_step(time), end) if time < end else end
        if not check_costs(request, price(time), platform):
            begun = runs.pop().start if runs and runs[-1].end == time else time
            runs.append(Window(begun, following))
        if following <= time:
            break
        time = following
    return runs


def _next_step(time: datetime) -> datetime:
    hour = time.replace(minute=0, second=0, microsecond=0)
    return hour + ((time - hour) // STEP + 1) * STEP


def find_cheapest_start(best: Offer, prices: PriceQuoter, now: datetime) -> datetime | None:
    """Return the start in the next 24 hours at which the offer costs least, if that saves a tenth."""
    present = find_price(best, prices, best.start)
    if not (prices.is_by_hour and present):
        return None
    starts = [_next_step(now) + number * STEP for number in range(SOON // STEP)]
    least, start = min((find_price(best, prices, start), start) for start in starts)
    return start if least <= present * WORTH else None


def find_price(best: Offer, prices: PriceQuoter, start: datetime) -> float:
    """Return what an offer would cost in money if it started then."""
    bill = prices.bill(best.amounts, best.storage, start)
    return next((quote.max for quote in bill.total if quote.type == MONETARY), 0.0)
