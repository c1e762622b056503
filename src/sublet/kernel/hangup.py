"""SIGHUP to a service: read the settings and open the log anew, unless it came because its terminal was closed."""

from __future__ import annotations

import os
import signal


class Hangup:
    """What SIGHUP means to this process, as it was when it began."""

    def __init__(self) -> None:
        """Before anything else handles the signal."""
        self._ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # by nohup
        self._had_terminal = _has_terminal()
        if not self._had_terminal:
            signal.signal(signal.SIGHUP, _do_nothing)  # one that comes too early is lost, and harms nothing

    def is_end(self) -> bool:
        """Whether the terminal that the service ran in has gone."""
        return self._had_terminal and not self._ignored and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _do_nothing(number: int, frame: object) -> None:
    pass
