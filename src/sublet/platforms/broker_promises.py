"""Conformance checks for a platform that is another broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from sublet.booking.model.offer import Remote
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.brokering import PassedAnswer, PassedRequest, PassesOn
from sublet.platforms.port import Platform

WITHIN = timedelta(seconds=20)
MINUTE = timedelta(minutes=1)
COMMAND = {"kind": "urn:sublet:kind:executable:command", "argv": ["true"]}
SCHEDULE = {"requested": {"duration": "PT1M"}}


async def _ask(platform: Platform, executable: dict[str, Any]) -> PassedAnswer:
    if not isinstance(platform, PassesOn):
        raise PlatformRefused(platform=platform.name, why="it is no broker")
    text = json.dumps({"executable": executable, "schedule": SCHEDULE})
    request = PassedRequest(text, "", str(uuid4()), ("sublet-platform-check",), WITHIN, MINUTE, True)
    answered = await platform.pass_on(request, datetime.now(UTC))
    if answered.offerset:
        await platform.give_up_ask(answered.offerset, "", None, frozenset())
    return answered


async def find_no_answer(platform: Platform) -> str:
    """Return what is wrong with the broker's answer to a request for a command; empty if nothing."""
    answered = await _ask(platform, COMMAND)
    return "" if answered.answer.offers or answered.answer.reasons else "it has neither offers nor reasons"


async def find_refused_kind(platform: Platform) -> str:
    """Return what is wrong with the broker's answer to an unknown kind of executable; empty if nothing."""
    answered = await _ask(platform, {"kind": f"urn:sublet:check:{uuid4()}"})
    kinds = [reason.kind for reason in answered.answer.reasons]
    return "it refuses the whole request instead of saying NO" if "urn:broker-refused" in kinds else ""


async def find_kept_offer(platform: Platform) -> str:
    """Return the fault if the broker accepts an offer after it was rejected; empty if none."""
    answered = await _ask(platform, COMMAND)
    for offer in answered.answer.offers[:1]:
        key = f"check-{uuid4()}"
        if isinstance(platform, PassesOn) and isinstance(offer.terms, Remote):
            try:
                await platform.take(offer.terms, "", key)
            except PlatformRefused:
                continue
            finally:
                await platform.give_up(offer.terms.url, "")
                await platform.clean(key)
            return f"{offer.terms.url} was accepted after it was rejected"
    return ""
