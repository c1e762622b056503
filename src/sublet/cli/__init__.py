"""The frame of the command line: entry, output, errors, prompts and progress; each subject has its own commands."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` is made of it, and takes long to load
import os
import sys


def main() -> None:
    """Run the command in sys.argv and exit with its code; from here on, Ctrl-C ends it without a traceback."""
    heard = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # else ignored, as in the background
    if heard:
        _signal.signal(_signal.SIGINT, leave)
    from sublet.cli.app import run_command_line  # the long part

    try:
        if heard:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        run_command_line()
    except KeyboardInterrupt:  # between two parts that handle it themselves
        sys.exit(130)
    finally:
        if heard:
            _signal.signal(_signal.SIGINT, leave)


def leave(number: int, frame: object) -> None:
    """Exit at once, before anything has begun or after everything is done."""
    os._exit(128 + number)
