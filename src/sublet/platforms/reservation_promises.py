"""The promise of a platform that holds its offers by reservations, as a rule that can be tried on a live one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.platforms.port import Platform
from sublet.platforms.reserving import Reserves

MEMORY = 128 << 20


async def find_kept_reservation(platform: Platform) -> str:
    """What is wrong with how its booked offers are reserved and given up; empty if nothing, or it makes none."""
    if not isinstance(platform, Reserves) or platform.terms == "booked":
        return ""
    compute = Compute(memory=Range.exactly(MEMORY))
    request = Request(Executable("command"), compute, duration=timedelta(minutes=2), platform=platform.name)
    answer = await platform.offers(request, ["exec"], datetime.now(UTC))
    keys = [offer.reservation for offer in answer.offers if offer.reservation]
    unlisted = set(keys) - {*await platform.list_reservations()}
    for _ in range(2):  # what is gone is no error
        await platform.give_up(keys)
    kept = set(keys) & {*await platform.list_reservations()}
    if unlisted:
        return f"it offers reservations that it does not list: {', '.join(sorted(unlisted))}"
    return f"reservations that were given up are listed still: {', '.join(sorted(kept))}" if kept else ""
