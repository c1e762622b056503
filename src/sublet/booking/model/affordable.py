"""Starts that keep to the asker's limits on costs, where prices depend on the hour; and hours that cost less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.limits import check_costs
from sublet.booking.model.offer import HINT, Offer, Reason
from sublet.booking.model.prices import MONETARY, Bill, PriceQuoter
from sublet.booking.model.request import Request, Window
from sublet.booking.model.windows import windows_of

STEP = timedelta(minutes=30)
AHEAD = timedelta(days=7)  # so far starts are tried
SOON = timedelta(days=1)  # so far a cheaper hour is worth a hint
ROOM = timedelta(hours=6)  # how long after it a start is welcome
WORTH = 0.9  # what saves less than a tenth is no hint


def keep_affordable(
    request: Request, price: Callable[[datetime], Bill], platform: str, now: datetime, horizon: timedelta
) -> Request:
    """The request with only those times to start at which it can be paid for; as it is, if there are none."""
    until = min(horizon, AHEAD)
    asked = windows_of(request, now, until) if request.windows or request.recurring else (Window(now, now + until),)
    windows: list[Window] = []
    for window in asked:
        windows += _find_affordable(request, price, platform, max(window.start, now), min(window.end, now + until))
    return replace(request, windows=tuple(windows), recurring=()) if windows else request


def _find_affordable(
    request: Request, price: Callable[[datetime], Bill], platform: str, start: datetime, end: datetime
) -> list[Window]:
    """Runs of starts that are affordable, by half hours."""
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


def find_cheaper_start(offers: Sequence[Offer], prices: PriceQuoter, now: datetime) -> list[Reason]:
    """A hint, if the best offer would cost less at another hour of the next day."""
    if not offers or not prices.is_by_hour:
        return []
    best = offers[0]
    present = _money(prices.bill(best.amounts, best.storage, best.start))
    if not present:
        return []
    starts = [_next_step(now) + number * STEP for number in range(SOON // STEP)]
    costs = [(_money(prices.bill(best.amounts, best.storage, start)), start) for start in starts]
    least, start = min(costs)
    if least > present * WORTH:
        return []
    message = f"From {start:%Y-%m-%d %H:%M} UTC on it would cost {1 - least / present:.0%} less.".replace("%", " %")
    nearest = f"{start:%Y-%m-%dT%H:%M:%SZ}/PT{ROOM // timedelta(hours=1)}H"
    return [Reason(HINT, "start", message, nearest=nearest)]


def _money(bill: Bill) -> float:
    return next((quote.max for quote in bill.total if quote.type == MONETARY), 0.0)
