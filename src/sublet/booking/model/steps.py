"""Steps: several commands in one session, each with a name of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

STEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


def read_step(text: str) -> str | dict[str, str]:
    """Parse a step as it is typed: `name=command`, or a command alone."""
    name, equals, line = text.partition("=")
    return {"name": name, "run": line} if equals and STEP_NAME.fullmatch(name) else text


def write_step(name: str, words: Sequence[str]) -> str | None:
    """Return what to type for a step, or None if one line can't express it."""
    line = shlex.join(words)
    text = f"{name}={line}" if name else line
    is_read_so = read_step(text) == ({"name": name, "run": line} if name else line)
    return text if is_read_so and text == text.strip() and len(text.splitlines()) == 1 else None
