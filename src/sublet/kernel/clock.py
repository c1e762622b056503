"""The service's clock: UTC, and steady within a step even if the machine's clock is set meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

from sublet.platforms.local.shim import clocks

Clock = Callable[[], datetime]

_offset: ContextVar[float | None] = ContextVar("clock offset", default=None)


def utc_now() -> datetime:
    """Return the current time as an aware datetime in UTC."""
    offset = _offset.get()
    return datetime.fromtimestamp(clocks.wall() if offset is None else clocks.steady() + offset, UTC)


@contextlib.contextmanager
def fix_clock(offset: float | None) -> Iterator[None]:
    """Run this task's clock at a fixed offset from the monotonic one, so that setting the machine's doesn't move it."""
    token = _offset.set(offset)
    try:
        yield
    finally:
        _offset.reset(token)


def is_clock_set() -> bool:
    """Whether the machine's clock was set since this task fixed its own."""
    offset = _offset.get()
    return offset is not None and abs(clocks.offset() - offset) > 1
