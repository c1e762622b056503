"""Predicts how long transfers take from measured ones.

A measured transfer counts more the closer its size is: small files measure a server's latency, large ones its
bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import log2

from sublet.booking.model.staging import Spread

KEPT_EACH = 50  # transfers that are kept for each source, system and hop
MOST = timedelta(days=30)  # upper limit of a prediction
RECENT = timedelta(days=90)
SEND_GUESS = 20_000_000  # bytes per second to a system, until some were measured
IMAGE_GUESS = 5_000_000  # bytes per second of an image that is fetched and converted
MAKE_GUESS = 20_000_000  # bytes per second of an archive that is converted into an image
MAKE_LEAST = timedelta(seconds=5)  # the least time that a conversion takes
UNKNOWN_SIZE = timedelta(seconds=30)  # guess for data of unknown size
LEAST_COUNTED = 1 << 16  # bytes; less says nothing about a road's speed
LEAST_SECONDS = 2.0  # faster, uncounted transfers came from a cache


class Hop(StrEnum):
    """One hop of the road that data takes to a system."""

    THERE = "there"  # fetched by the system itself
    STREAMED = "streamed"  # without this machine's disk
    HERE = "here"  # brought to this machine
    SENT = "sent"  # from this machine to the system
    MADE = "made"  # an image archive was converted into what a container tool runs


@dataclass(frozen=True, slots=True)
class Transfer:
    """A finished transfer."""

    ended: datetime
    source: str  # the host that it came from; empty: this machine
    system: str  # the platform that it was for
    hop: Hop
    bytes: int  # 0: not counted
    seconds: float


def spread_of_guess(guess: timedelta) -> Spread:
    """Turn a guess into a spread, with the guess as its upper end."""
    return Spread(guess / 10, guess / 2, guess)


def find_transfers(history: Iterable[Transfer], source: str, system: str, hop: Hop) -> list[Transfer]:
    """Return the past transfers to predict from; transfers to this machine count for all systems."""
    any_system = hop is Hop.HERE
    return [
        transfer
        for transfer in history
        if transfer.hop is hop and transfer.source == source and (any_system or transfer.system == system)
    ]


def predict_transfer(size: int | None, transfers: Sequence[Transfer], guess: timedelta) -> Spread:
    """Predict how long so many bytes take: the 10th, 50th and 90th percentile of what was measured, or a guess.

    The fewer transfers were measured, the wider the spread.
    """
    known = [transfer for transfer in transfers if transfer.seconds >= 0 and (size is None or transfer.bytes)]
    if not known:
        return spread_of_guess(guess)
    if size is None:
        values = [(transfer.seconds, 1.0) for transfer in known]
    else:
        values = [(size * transfer.seconds / transfer.bytes, _weight(size, transfer.bytes)) for transfer in known]
    low, likely, high = (_length(find_quantile(values, part)) for part in (0.1, 0.5, 0.9))
    doubt = 1 + 1 / len(known)
    return Spread(min(low, likely / doubt), likely, max(high, likely * doubt))


def _length(seconds: float) -> timedelta:
    return min(timedelta(seconds=min(seconds, MOST.total_seconds())), MOST)


def _weight(size: int, other: int) -> float:
    return 1 / (1 + abs(log2(max(size, 1) / max(other, 1))))


def find_quantile(values: Iterable[tuple[float, float]], part: float) -> float:
    """Return the weighted quantile: the least value at which this part of the weight is reached."""
    ordered = sorted(values)
    wanted, sum_so_far = part * sum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        sum_so_far += weight
        if sum_so_far >= wanted:
            return value
    return ordered[-1][0]


class TransferTimes:
    """For parallel transfers, the total bytes from each host, and the seconds until the last of them came."""

    def __init__(self) -> None:
        """Start empty."""
        self.by_source: dict[str, tuple[int, float]] = {}

    def note(self, source: str, bytes: int, seconds: float) -> None:
        """Add bytes from a host that took so many seconds."""
        known, longest = self.by_source.get(source, (0, 0.0))
        self.by_source[source] = known + bytes, max(longest, seconds)


class Meter:
    """A progress callback that counts bytes, even if several parts report one after another."""

    def __init__(self, tell: Callable[[int, int | None], None]) -> None:
        """Pass progress on to another callback."""
        self._tell = tell
        self._before = self._part = 0

    def __call__(self, done: int, total: int | None) -> None:
        """Report that so many bytes of the current part are done."""
        if done < self._part:
            self._before += self._part
        self._part = done
        self._tell(done, total)

    @property
    def bytes(self) -> int:
        """The total number of bytes."""
        return self._before + self._part
