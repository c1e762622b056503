"""A log that can't flood: beyond a rate, lines about the same event are counted instead of written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

MOST_EVENTS = 2000  # that are known at a time
TELL_AFTER = 30.0  # seconds after which lines that were left out are told, if nothing is written about their event


@dataclass(frozen=True, slots=True)
class LogRate:
    """How many bytes about one event may come at once, and how many a second after that."""

    burst: float
    per_second: float


USUAL = LogRate(burst=4 << 20, per_second=128 << 10)  # what people do
TROUBLE = LogRate(burst=256 << 10, per_second=4 << 10)  # warnings and errors, some with a traceback


@dataclass(slots=True)
class _Seen:
    """What was written about one event: the bytes that it has left, as of then, and the lines that were left out."""

    left: float
    at: float
    omitted: int = 0
    since: float = 0.0  # when the first of these was left out


class LogLimiter:
    """Decides which lines are written. An event's own lines can't push those of others out of the log."""

    def __init__(self, rates: Mapping[str, LogRate] | None = None, clock: Callable[[], float] = monotonic) -> None:
        """Nothing was written yet; `rates` are by level, and other levels have the usual one."""
        self._rates = {"warning": TROUBLE, "error": TROUBLE, "critical": TROUBLE} if rates is None else rates
        self._clock = clock
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._short: set[tuple[str, str]] = set()  # events of which lines were left out

    def admit(self, event: str, level: str, size: int) -> bool:
        """Whether a line of so many bytes can be written; else it is counted."""
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
        """How many lines were left out, by event: of this one, and of those about which none came since."""
        counts: dict[str, int] = {}
        for key in tuple(self._short):
            seen = self._seen.get(key)
            if seen and (key == (event, level) or self._clock() - seen.since > TELL_AFTER):
                counts[key[0]] = counts.get(key[0], 0) + seen.omitted
                seen.omitted, seen.since = 0, 0.0
                self._short.discard(key)
        return counts

    def _make_room(self) -> None:
        """Forget events that were not written about for the longest time."""
        if len(self._seen) >= MOST_EVENTS:
            for key in sorted(self._seen, key=lambda key: self._seen[key].at)[: MOST_EVENTS // 10]:
                del self._seen[key]
                self._short.discard(key)
