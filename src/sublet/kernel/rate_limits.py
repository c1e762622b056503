"""A rate limit, such as `200/10m`: the most at once, and the most within that time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from sublet.booking.model.amounts import duration_text, parse_duration
from sublet.kernel.errors import BadAmount

_FORM = re.compile(r"([1-9][0-9]{0,8})\s*/\s*(\S.*)")
_UNITS = frozenset({"s", "m", "h", "d"})  # `30/m` means `30/1m`


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `most` at once, and at most `most` within the time `per`."""

    most: int
    per: timedelta

    @property
    def each(self) -> float:
        """The seconds after which one more is allowed."""
        return self.per.total_seconds() / self.most

    def __str__(self) -> str:
        """Return the limit as it is written in the settings."""
        return f"{self.most}/{duration_text(self.per)}"


def parse_rate_limit(text: str) -> RateLimit:
    """Parse a rate limit such as `200/10m`, `30/h` or `5/1m30s`; raise BadAmount if it is malformed."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise BadAmount(text=text[:40], what="a rate limit", example="200/10m")
    per = match[2].strip()
    length = parse_duration(f"1{per}" if per in _UNITS else per)
    if length <= timedelta(0):
        raise BadAmount(text=text[:40], what="a rate limit in a time that is longer than nothing", example="200/10m")
    return RateLimit(int(match[1]), length)
