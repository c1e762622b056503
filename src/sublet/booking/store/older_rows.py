"""Offers and requests as older versions wrote them: each option of a scheduler was a field of its own."""

from __future__ import annotations

import json

WHOLE = '"scheduler":{"queue":'  # what every newer one has in it
OF_AN_OFFER = ("qos", "project")
OF_A_REQUEST = ("queue", "qos", "project")


def gather_offer_options(text: str) -> str:
    """An offer with its options as one value; the queue that it would wait in is a field of the offer itself."""
    return text if WHOLE in text else _gather(text, OF_AN_OFFER)


def gather_request_options(text: str) -> str:
    """A request with its options as one value."""
    return text if WHOLE in text else _gather(text, OF_A_REQUEST)


def _gather(text: str, names: tuple[str, ...]) -> str:
    row = json.loads(text)
    return json.dumps(row | {"scheduler": {name: row.pop(name) for name in names if name in row}})
