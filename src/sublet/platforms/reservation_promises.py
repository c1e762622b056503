"""A conformance check for platforms that hold their offers by reservations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.platforms.port import Platform
from sublet.platforms.reserving import Reserves

MEMORY = 128 << 20


async def find_kept_reservation(platform: Platform) -> str:
    """Return what is wrong with how booked offers are reserved and released.

    Empty if nothing, or if it reserves none.
    """
    if not isinstance(platform, Reserves) or platform.terms == "booked":
        return ""
    compute = Compute(memory=Range.exactly(MEMORY))
    request = Request(Executable("command"), compute, duration=timedelta(minutes=2), platform=platform.name)
    answer = await platform.offers(request, ["exec"], datetime.now(UTC))
    keys = [offer.reservation for offer in answer.offers if offer.reservation]
    unlisted = set(keys) - {*await platform.list_reservations()}
    for _ in range(2):  # twice, because giving up a reservation that is gone must be no error
        await platform.give_up(keys)
    kept = set(keys) & {*await platform.list_reservations()}
    if unlisted:
        return f"it offers reservations that it does not list: {', '.join(sorted(unlisted))}"
    return f"reservations that were given up are listed still: {', '.join(sorted(kept))}" if kept else ""
