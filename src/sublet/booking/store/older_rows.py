"""Offers and requests as older versions wrote them: scheduler options were single fields, and one pool served all."""

from __future__ import annotations

import json

WHOLE = '"scheduler":{"queue":'  # what every newer one has in it
POOLS = '"pools":'  # so has every newer offer
OF_AN_OFFER = ("qos", "project")
OF_A_REQUEST = ("queue", "qos", "project")


def gather_offer_options(text: str) -> str:
    """An offer with its options as one value; the queue that it would wait in is a field of the offer itself."""
    return text if WHOLE in text else _gather(text, OF_AN_OFFER)


def name_pools(text: str) -> str:
    """An offer with the pool of each of its pieces of storage; all of them were in one."""
    if POOLS in text:
        return text
    row = json.loads(text)
    pool = row.pop("pool", "")
    return json.dumps(row | {"pools": dict.fromkeys(row.get("storage", {}), pool)})


def gather_request_options(text: str) -> str:
    """A request with its options as one value."""
    return text if WHOLE in text else _gather(text, OF_A_REQUEST)


def _gather(text: str, names: tuple[str, ...]) -> str:
    row = json.loads(text)
    return json.dumps(row | {"scheduler": {name: row.pop(name) for name in names if name in row}})
