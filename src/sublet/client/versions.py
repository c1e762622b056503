"""Notes if the person's own service has another version than this command, once for each start of the service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from sublet.kernel.home import Home
from sublet.kernel.version import VERSION

HEADER = "sublet-version"
RESTART = "sublet down, then sublet up"


def compare(theirs: str) -> str:
    """Return a note about a service of another version; empty if it is the same. Older services don't report theirs."""
    if theirs == VERSION:
        return ""
    return f"this command is sublet {VERSION}, and your service still runs {theirs or 'an older version'}"


def tell_difference(home: Home, headers: Mapping[str, str], note: Callable[[str], None]) -> None:
    """Note once that the service should be restarted, if it has another version."""
    difference = compare(headers.get(HEADER, ""))
    if difference and _is_news(home, difference):
        note(f"note: {difference}; restart it: {RESTART}")


def _is_news(home: Home, difference: str) -> bool:
    """Whether the note wasn't given since the service started; this is recorded in a file, if possible."""
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
