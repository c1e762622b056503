"""Data comes to a system, and leaves it, no faster than its settings say; each waits for as long as it is ahead."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sublet.platforms.batch import fetching
from sublet.platforms.batch.far import fetcher, sender
from sublet.platforms.batch.far.sources import FetchFailed
from sublet.platforms.batch.fetching import limit_rate

pytestmark = pytest.mark.anyio
RATE = 100  # bytes a second


class Clock:
    """Time passes while someone waits, and never else."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def sleep_here(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def is_set(self) -> bool:
        return False


async def pieces_of(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


@pytest.mark.parametrize(("rate", "seconds"), [(RATE, 5.0), (0, 0.0)])
async def test_what_is_streamed(monkeypatch: pytest.MonkeyPatch, rate: int, seconds: float) -> None:
    clock = Clock()
    monkeypatch.setattr(fetching.time, "monotonic", clock.monotonic)
    monkeypatch.setattr(fetching.asyncio, "sleep", clock.sleep_here)
    assert [len(piece) async for piece in limit_rate(pieces_of(300, 150, 50), rate)] == [300, 150, 50]
    assert clock.now == pytest.approx(seconds)


@pytest.mark.parametrize(("rate", "seconds"), [(RATE, 5.0), (0, 0.0)])
def test_what_the_system_fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rate: int, seconds: float) -> None:
    clock = Clock()
    monkeypatch.setattr(fetcher.time, "monotonic", clock.monotonic)
    entry = fetcher.CacheEntry(str(tmp_path), {"rate": rate})
    entry.ended = clock  # type: ignore[assignment]
    for size in (300, 150, 50):
        entry.add(size)
    assert clock.now == pytest.approx(seconds)


def test_nobody_waits_for_what_is_needed_no_more(tmp_path: Path) -> None:
    entry = fetcher.CacheEntry(str(tmp_path), {"rate": 1})
    entry.ended.set()
    with pytest.raises(FetchFailed, match="nobody needs it"):
        entry.add(1 << 20)


@pytest.mark.parametrize(("rate", "seconds"), [(RATE, 5.0), (0, 0.0)])
def test_what_the_system_sends(monkeypatch: pytest.MonkeyPatch, rate: int, seconds: float) -> None:
    clock = Clock()
    monkeypatch.setattr(sender.time, "sleep", clock.sleep)
    file = sender.PacedFile(io.BytesIO(b"x" * 500), rate)
    assert b"".join(iter(lambda: file.read(1 << 20), b"")) == b"x" * 500
    assert clock.now == pytest.approx(seconds)
