"""The `start` of a request in the short form, fixed in the time zone of the person who wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sublet.booking.model.windows import pin_start
from sublet.kernel.errors import BadRequest


def pin_starts(document: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the document with a `start` that means the same in every time zone; `now` is in the person's zone."""
    start = document.get("start")
    if isinstance(start, str):
        return {**document, "start": _pin(start, now)}
    if isinstance(start, list):
        return {**document, "start": [_pin(each, now) if isinstance(each, str) else each for each in start]}
    return dict(document)


def _pin(text: str, now: datetime) -> str:
    try:
        return pin_start(text, now)
    except BadRequest:
        return text  # the mistake is reported, with its field, when the whole request is read
