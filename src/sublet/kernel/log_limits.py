"""A rate limit for the log: beyond the limit, lines about the same event are counted instead of written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

MOST_EVENTS = 2000  # tracked at a time
TELL_AFTER = 30.0  # seconds after which omitted lines are reported, even if their event isn't logged again


@dataclass(frozen=True, slots=True)
class LogRate:
    """How many bytes one event can log at once, and how many per second after that."""

    burst: float
    per_second: float


USUAL = LogRate(burst=4 << 20, per_second=128 << 10)  # for ordinary events
TROUBLE = LogRate(burst=256 << 10, per_second=4 << 10)  # warnings and errors, some with a traceback


@dataclass(slots=True)
class _Seen:
    """One event's token bucket: the bytes left at time `at`, and the lines omitted since the last report."""

    left: float
    at: float
    omitted: int = 0
    since: float = 0.0  # when the first of these lines was omitted


class LogLimiter:
    """Decides which lines are written, by event, so that one frequent event can't crowd out the others."""

    def __init__(self, rates: Mapping[str, LogRate] | None = None, clock: Callable[[], float] = monotonic) -> None:
        """Set the rates by level; other levels have the usual rate."""
        self._rates = {"warning": TROUBLE, "error": TROUBLE, "critical": TROUBLE} if rates is None else rates
        self._clock = clock
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._short: set[tuple[str, str]] = set()  # events with omitted lines

    def admit(self, event: str, level: str, size: int) -> bool:
        """Whether a line of `size` bytes can be written; if not, the line is counted as omitted."""
        rate, now = self._rates.get(level, USUAL), self._clock()
        seen = self._seen.get((event, level))
        if seen is None:
            self._make_room()
            seen = self._seen[event, level] = _Seen(rate.burst, now)
        seen.left = min(rate.burst, seen.left + (now - seen.at) * rate.per_second)
        seen.at = now
        if seen.left < min(size, rate.burst):
            seen.omitted += 1
            seen.since = seen.since or now
            self._short.add((event, level))
            return False
        seen.left -= size
        return True

    def take_omitted(self, event: str, level: str) -> Mapping[str, int]:
        """Return and reset the counts of omitted lines: of this event, and of others omitted for long."""
        counts: dict[str, int] = {}
        for key in tuple(self._short):
            seen = self._seen.get(key)
            if seen and (key == (event, level) or self._clock() - seen.since > TELL_AFTER):
                counts[key[0]] = counts.get(key[0], 0) + seen.omitted
                seen.omitted, seen.since = 0, 0.0
                self._short.discard(key)
        return counts

    def _make_room(self) -> None:
        """Remove the events that weren't logged for the longest time."""
        if len(self._seen) >= MOST_EVENTS:
            for key in sorted(self._seen, key=lambda key: self._seen[key].at)[: MOST_EVENTS // 10]:
                del self._seen[key]
                self._short.discard(key)
