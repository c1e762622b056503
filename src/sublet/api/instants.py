"""Instants in the bodies of requests."""

from __future__ import annotations

from datetime import datetime

from sublet.kernel.errors import BadRequest


def require_zone(instant: datetime | None, field: str) -> datetime | None:
    """Return the instant of a field; raise BadRequest if it has no time zone."""
    if instant is not None and instant.tzinfo is None:
        raise BadRequest(
            detail=f"`{field}` needs a time zone.", hint="Write it with a zone, as in 2027-06-30T12:00:00Z."
        )
    return instant
