"""SIGHUP to a service: reload the settings and reopen the log, unless it was sent because the terminal closed."""

from __future__ import annotations

import os
import signal


class Hangup:
    """How this process treats SIGHUP, decided by the state that it started in."""

    def __init__(self) -> None:
        """Record that state; call this before anything else handles the signal."""
        self._ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as nohup does
        self._had_terminal = _has_terminal()
        if not self._had_terminal:
            signal.signal(signal.SIGHUP, _do_nothing)  # a signal during start-up is ignored instead of fatal

    def is_end(self) -> bool:
        """Whether the terminal that the service was started in has closed, so that the service should stop."""
        return self._had_terminal and not self._ignored and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _do_nothing(number: int, frame: object) -> None:
    pass
