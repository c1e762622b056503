"""Text for a remote shell, in which every value is quoted data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from shlex import quote

from sublet.kernel.errors import PlatformRefused

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def word(value: str) -> str:
    """Quote a value as one word; raise ValueError for a value with a zero byte."""
    if "\0" in value:
        raise ValueError("a value has a zero byte in it")
    return quote(value)


def variable(name: str) -> str:
    """Return the name of a variable, or raise ValueError if it isn't valid."""
    if not VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} can't be the name of a variable")
    return name


def function(name: str, lines: Iterable[str]) -> str:
    """Write a shell function with these lines."""
    return "\n".join([f"{name}() {{", ":", *lines, "}"])


def inside(name: str, platform: str, what: str = "the working directory") -> str:
    """Return a relative path without odd parts; raise PlatformRefused if it leads outside."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or not parts or "\0" in name:
        raise PlatformRefused(platform=platform, why=f"{name!r} is not below {what}")
    return "/".join(parts)
