"""Converts dates, times and durations as people type them to instants for the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.spoken_times import parse_spoken
from sublet.kernel.errors import BadAmount
from sublet.kernel.views import instant_text

FURTHEST = timedelta(days=36_500)
DAYS_AGO = {"today": 0, "yesterday": 1}


def read_past(text: str | None) -> str | None:
    """Parse a date or time (local unless it has a zone), `today`, `yesterday`, or how long ago, such as `7d`."""
    if text in DAYS_AGO:
        today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        return instant_text((today - timedelta(days=DAYS_AGO[text])).astimezone(UTC))
    return _read(text, -1)


def read_coming(text: str | None) -> str | None:
    """Parse a date or time (local unless it has a zone), how long from now, such as `2h`, or `tomorrow 9am`."""
    spoken = parse_spoken(text.split(), datetime.now().astimezone()) if text else None
    return instant_text(spoken.start) if spoken else _read(text, 1)


def _read(text: str | None, direction: int) -> str | None:
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        try:
            instant = datetime.now(UTC) + direction * parse_duration(text, FURTHEST)
        except BadAmount:
            raise BadAmount(text=text, what="a day or a time", example="2026-11-01, '2026-11-01 12:00' or 7d") from None
    return instant_text(instant.astimezone(UTC))  # a time without a zone is local
