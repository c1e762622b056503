"""Codes that people type: asked for again in a terminal if they were wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sublet.cli.output import Output
from sublet.kernel.errors import WrongCode

TRIES = 5
T = TypeVar("T")


def ask_until_right(out: Output, show_code: Callable[[], T], tries: int = TRIES) -> T:
    """Ask for a code and show it to the gateway, again if it was wrong; without a terminal, once."""
    for _ in range(tries - 1):
        try:
            return show_code()
        except WrongCode as error:
            if not out.can_ask:
                raise
            out.note(error.sentences)
    return show_code()
