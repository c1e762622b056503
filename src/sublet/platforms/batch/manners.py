"""How a guest behaves on a site: by its settings, and by the site's own file, which can only restrict them further.

The file is plain text that everybody can read, by default `/etc/sublet/site`, with a key and a value on each line:

    poll 2m           # the least time between two queries of the queue
    look 1m           # the least time between two looks at the jobs' records
    survey 30m        # how long a survey is good for
    calls 0.5         # how many times a second the scheduler is called in the long run
    sessions 20       # how many sessions of one person may be queued or running at once
    parts 10          # the most jobs in one bag
    interactive no    # no interactive sessions
    pull no           # no images are pulled or built on the login host
    download no       # no data is fetched by the login host
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sublet.booking.model.amounts import parse_count, parse_duration
from sublet.kernel.errors import BadAmount
from sublet.kernel.texts import describe_duration


@dataclass(frozen=True, slots=True)
class Manners:
    """How often a guest asks, how much, and what it may do."""

    poll: timedelta = timedelta(0)
    look: timedelta = timedelta(0)
    survey: timedelta = timedelta(0)
    calls: float = float("inf")
    sessions: int | None = None  # of one person, at once; None: as many as the scheduler accepts
    parts: int = 1000  # of one bag
    interactive: bool = True
    pull: bool = True
    download: bool = True
    notes: tuple[str, ...] = field(default=(), compare=False)  # what the site asks for, and lines that can't be read

    def lower(self, text: str) -> Manners:
        """Return the same manners, restricted by the site's own file."""
        asked, notes = read_manners(text)
        kept = {key: LOWER[key](getattr(self, key), value) for key, value in asked.items()}
        return replace(self, **kept, notes=notes)


def _fewer(ours: int | None, theirs: int) -> int:
    return theirs if ours is None else min(ours, theirs)


LOWER: Mapping[str, Callable[[Any, Any], Any]] = {
    "poll": max,
    "look": max,
    "survey": max,
    "calls": min,
    "sessions": _fewer,
    "parts": min,
    "interactive": lambda ours, theirs: ours and theirs,
    "pull": lambda ours, theirs: ours and theirs,
    "download": lambda ours, theirs: ours and theirs,
}


def _yes(text: str) -> bool:
    words = {"yes": True, "true": True, "no": False, "false": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < float("inf"):
        raise ValueError(text)
    return rate


READ: Mapping[str, Callable[[str], Any]] = {
    "poll": parse_duration,
    "look": parse_duration,
    "survey": parse_duration,
    "calls": _rate,
    "sessions": parse_count,
    "parts": parse_count,
    "interactive": _yes,
    "pull": _yes,
    "download": _yes,
}
WORDS: Mapping[str, str] = {
    "poll": "the queue is asked for at most every {}",
    "look": "job records are polled at most every {}",
    "survey": "it is surveyed at most every {}",
    "calls": "the scheduler is called at most {} times a second",
    "sessions": "at most {} of your sessions wait or run at once",
    "parts": "a bag is of at most {} jobs",
    "interactive": "interactive sessions are allowed: {}",
    "pull": "images may be fetched and made on its login host: {}",
    "download": "its login host may fetch data by itself: {}",
}


def read_manners(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read a site's file: its values, and notes for people. A line that can't be read gets a note and is ignored."""
    values: dict[str, Any] = {}
    notes: list[str] = []
    for line in text.splitlines():
        key, _, value = line.partition("#")[0].strip().partition(" ")
        value = value.strip()
        if not key:
            continue
        try:
            values[key] = READ[key](value)
        except (KeyError, ValueError, BadAmount):
            notes.append(f"the site's settings have a line that can't be understood: {line.strip()[:80]}")
        else:
            shown = describe_duration(values[key]) if isinstance(values[key], timedelta) else value
            notes.append(f"the site's settings: {WORDS[key].format(shown)}")
    return values, tuple(notes)
