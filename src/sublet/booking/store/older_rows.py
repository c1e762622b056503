"""Offers and requests as older versions stored them: single scheduler fields, and one pool for all storage."""

from __future__ import annotations

import json

WHOLE = '"scheduler":{"queue":'  # every newer row contains this
POOLS = '"pools":'  # every newer offer contains this
OF_AN_OFFER = ("qos", "project")
OF_A_REQUEST = ("queue", "qos", "project")


def gather_offer_options(text: str) -> str:
    """Return an offer with its scheduler options as one value; its queue is a field of the offer itself."""
    return text if WHOLE in text else _gather(text, OF_AN_OFFER)


def name_pools(text: str) -> str:
    """Return an offer with the pool of each of its storages; older offers have one pool for all."""
    if POOLS in text:
        return text
    row = json.loads(text)
    pool = row.pop("pool", "")
    return json.dumps(row | {"pools": dict.fromkeys(row.get("storage", {}), pool)})


def gather_request_options(text: str) -> str:
    """Return a request with its scheduler options as one value."""
    return text if WHOLE in text else _gather(text, OF_A_REQUEST)


def _gather(text: str, names: tuple[str, ...]) -> str:
    row = json.loads(text)
    return json.dumps(row | {"scheduler": {name: row.pop(name) for name in names if name in row}})
