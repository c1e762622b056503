"""Whether one's own service is of another version than this code; told once for each start of the service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from sublet.kernel.home import Home
from sublet.kernel.version import VERSION

HEADER = "sublet-version"
RESTART = "sublet down, then sublet up"


def compare(theirs: str) -> str:
    """What to say of a service of this version; empty if it is the same. Services before 0.2 don't tell theirs."""
    if theirs == VERSION:
        return ""
    return f"this command is sublet {VERSION}, and your service still runs {theirs or 'an older version'}"


def tell_difference(home: Home, headers: Mapping[str, str], note: Callable[[str], None]) -> None:
    """Say once that the service should be started anew, if it is of another version."""
    difference = compare(headers.get(HEADER, ""))
    if difference and _is_news(home, difference):
        note(f"note: {difference}; restart it: {RESTART}")


def _is_news(home: Home, difference: str) -> bool:
    """Whether nobody was told so since the service started; remembered in a file, if that can be written."""
    file = os.path.join(home.run, "version-told")
    try:
        socket = os.stat(home.socket)
        news = f"{socket.st_ino} {socket.st_mtime_ns} {difference}"
        with suppress(FileNotFoundError), open(file, encoding="utf-8") as known:
            if known.read() == news:
                return False
        with open(file, "w", encoding="utf-8") as known:
            known.write(news)
    except OSError:
        return True
    return True
