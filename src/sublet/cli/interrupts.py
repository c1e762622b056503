"""Ctrl-C where something must be said of it: kept back until it can be heeded, and never lost."""

from __future__ import annotations

import signal
import threading
from types import TracebackType


class Interrupts:
    """Heeds Ctrl-C as ever until it is told to hold it back; while one is being heeded, the next one is held back, too.

    Of two that come while they are held back, the second is heeded at once: nobody waits for what hangs.
    """

    def __init__(self) -> None:
        """None has come."""
        self._is_held = self._has_come = self._is_ours = False

    def __enter__(self) -> Interrupts:
        """From now on; not where it is ignored, and not in a thread, which never sees one."""
        is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_heard and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._note)
            self._is_ours = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As it was before; one that was held back to the end has been overtaken by it."""
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def hold(self) -> None:
        """Hold it back from now on."""
        self._is_held = True

    def release(self) -> None:
        """Heed it from now on, and one that was held back at once."""
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
