"""The service's clock: UTC, and steady within a step even if someone sets the machine's clock meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime

from sublet.platforms.local.shim import clocks

Clock = Callable[[], datetime]

_offset: ContextVar[float | None] = ContextVar("clock offset", default=None)


def utc_now() -> datetime:
    """The time, aware, in UTC."""
    offset = _offset.get()
    return datetime.fromtimestamp(clocks.wall() if offset is None else clocks.steady() + offset, UTC)


@contextlib.contextmanager
def fix_clock(offset: float | None) -> Iterator[None]:
    """Let this task's clock be ahead of the steady one by this much, also if someone sets the machine's meanwhile."""
    token = _offset.set(offset)
    try:
        yield
    finally:
        _offset.reset(token)


def is_clock_set() -> bool:
    """Whether someone has set the machine's clock since this task fixed its own."""
    offset = _offset.get()
    return offset is not None and abs(clocks.offset() - offset) > 1
