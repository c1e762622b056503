"""Ctrl-C and other signals during critical parts of a command: handled when they can be, and never lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

ENDING = (signal.SIGTERM, signal.SIGHUP)  # `kill`, and a terminal that was closed


@contextmanager
def cleaning_up_on_signals(clean_up: Callable[[], None]) -> Iterator[None]:
    """Clean up and exit on SIGTERM and SIGHUP.

    The handler does both, as `input` can lose an exception. Signals that are ignored, as by `nohup`, stay so; outside
    the main thread nothing is changed.
    """
    in_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in ENDING if in_main and signal.getsignal(number) is signal.SIG_DFL]

    def leave(number: int, frame: object) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # cleaning up is not interrupted by the next one
        try:
            clean_up()
        finally:
            os._exit(128 + number)

    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


class Interrupts:
    """Handles Ctrl-C as usual until `hold` is called; while one is being handled, the next is deferred, too.

    Of two that come while they are deferred, the second takes effect at once, so that a hanging command can be stopped.
    """

    def __init__(self) -> None:
        """Start without a pending interrupt."""
        self._is_held = self._has_come = self._is_ours = False

    def __enter__(self) -> Interrupts:
        """Install the handler, except where SIGINT is ignored, or outside the main thread, which never receives it."""
        is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_heard and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._note)
            self._is_ours = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the default handler; an interrupt that is still deferred is dropped."""
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def hold(self) -> None:
        """Defer Ctrl-C from now on."""
        self._is_held = True

    def release(self) -> None:
        """Handle Ctrl-C from now on; raise KeyboardInterrupt if one was deferred."""
        if self._has_come:
            self._has_come = False
            raise KeyboardInterrupt
        self._is_held = False

    def _note(self, number: int, frame: object) -> None:
        if self._is_held and not self._has_come:
            self._has_come = True
            return
        self._is_held, self._has_come = True, False
        raise KeyboardInterrupt
