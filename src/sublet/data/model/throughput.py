"""How fast data came from where to where, and how long the next will take by that.

What was measured counts the more the nearer its size is to what is to come: small files tell of a server's answer,
large ones of the road to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import log2

from sublet.booking.model.staging import Spread

KEPT_EACH = 50  # transfers that are remembered of one source, system and road
MOST = timedelta(days=30)  # nobody waits for longer
RECENT = timedelta(days=90)
SEND_GUESS = 20_000_000  # bytes a second to a system, while nothing was measured
IMAGE_GUESS = 5_000_000  # bytes a second of an image that is fetched and made into what runs
MAKE_GUESS = 20_000_000  # bytes a second of an archive that is made into what a container tool runs
MAKE_LEAST = timedelta(seconds=5)  # and so long in any case
UNKNOWN_SIZE = timedelta(seconds=30)  # a guess for what nobody knows the size of
LEAST_COUNTED = 1 << 16  # bytes; less tells nothing of how fast a road is
LEAST_SECONDS = 2.0  # what took less, and nobody counted, was there already


class Hop(StrEnum):
    """One hop of a road on which data comes to a system."""

    THERE = "there"  # fetched by the system itself
    STREAMED = "streamed"  # past this machine's disk
    HERE = "here"  # brought to this machine
    SENT = "sent"  # from this machine to the system
    MADE = "made"  # an archive of an image, made into what a container tool runs


@dataclass(frozen=True, slots=True)
class Transfer:
    """Some data that was moved."""

    ended: datetime
    source: str  # the host that it came from; empty: this machine
    system: str  # the platform that it was for
    hop: Hop
    bytes: int  # 0: nobody counted them
    seconds: float


def spread_of_guess(guess: timedelta) -> Spread:
    """A guess says how long it should take at most."""
    return Spread(guess / 10, guess / 2, guess)


def find_transfers(history: Iterable[Transfer], source: str, system: str, hop: Hop) -> list[Transfer]:
    """What tells how long the next one takes; what is brought here comes equally fast for all systems."""
    any_system = hop is Hop.HERE
    return [
        transfer
        for transfer in history
        if transfer.hop is hop and transfer.source == source and (any_system or transfer.system == system)
    ]


def predict_transfer(size: int | None, transfers: Sequence[Transfer], guess: timedelta) -> Spread:
    """How long so many bytes take: by the tenth, half and nine tenths of what was measured; else by a guess.

    The fewer were measured, the wider it is.
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
    """The least value up to which so much of the weight lies."""
    ordered = sorted(values)
    wanted, sum_so_far = part * sum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        sum_so_far += weight
        if sum_so_far >= wanted:
            return value
    return ordered[-1][0]


class TransferTimes:
    """What came from each host at the same time: bytes in all, and the seconds until the last of it was there."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.by_source: dict[str, tuple[int, float]] = {}

    def note(self, source: str, bytes: int, seconds: float) -> None:
        """So much came from a host, and was there after so long."""
        known, longest = self.by_source.get(source, (0, 0.0))
        self.by_source[source] = known + bytes, max(longest, seconds)


class Meter:
    """Counts bytes as they are told by progress, also where several parts are told one after another."""

    def __init__(self, tell: Callable[[int, int | None], None]) -> None:
        """Pass on to whoever else is told."""
        self._tell = tell
        self._before = self._part = 0

    def __call__(self, done: int, total: int | None) -> None:
        """So many bytes of a part are done."""
        if done < self._part:
            self._before += self._part
        self._part = done
        self._tell(done, total)

    @property
    def bytes(self) -> int:
        """All of them."""
        return self._before + self._part
