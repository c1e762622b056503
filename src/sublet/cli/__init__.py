"""The frame of the command line: entry, output, errors, prompts and progress; each subject has its own commands."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` is made of it, and takes long to load
import os
import sys


def main() -> None:
    """Run the command that was typed, and exit as it says; Ctrl-C ends it quietly from here on."""
    heard = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # else it is ignored, as in a background
    if heard:
        _signal.signal(_signal.SIGINT, leave)
    from sublet.cli.app import run_command_line  # the long part

    try:
        if heard:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        run_command_line()
    except KeyboardInterrupt:  # between one thing that heeds it and the next
        sys.exit(130)
    finally:
        if heard:
            _signal.signal(_signal.SIGINT, leave)


def leave(number: int, frame: object) -> None:
    """End at once: nothing has begun yet, or all is done."""
    os._exit(128 + number)
