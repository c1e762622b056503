"""Dates with the name of a month: `1 Dec`, `Tue 1 Dec`, `December 1st, 2026`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from sublet.kernel.errors import BadAmount

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
LONGEST = 4  # words: tue 1 dec 2026
_NUMBER = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th|\.)?")
_YEAR = re.compile(r"[0-9]{4}")


def weekday(name: str) -> int | None:
    """Return the number of a weekday, from 0, by its name or at least three letters of it; None for other words."""
    return _find(name, WEEKDAYS)


def parse_named_date(words: Sequence[str], today: date) -> date | None:
    """Parse a day and a month, with a weekday and a year if they are there; return None for other words.

    Without a year it is the next such day. A date that doesn't exist, or is another weekday, raises BadAmount.
    """
    plain = [word for word in words if word != "of"]
    named = weekday(plain[0]) if len(plain) > 2 else None
    match plain[1:] if named is not None else plain:
        case [first, second]:
            year = ""
        case [first, second, year] if _YEAR.fullmatch(year):
            pass
        case _:
            return None
    if _find(first, MONTHS) is not None:
        first, second = second, first
    day, month = _NUMBER.fullmatch(first), _find(second, MONTHS)
    if day is None or month is None:
        return None
    chosen = _next_date(int(day[1]), month + 1, int(year) if year else None, today)
    text = " ".join(words)
    if chosen is None:
        raise BadAmount(text=text, what="a day of the calendar", example="one like 2026-12-01")
    if named not in (None, chosen.weekday()):
        what = f"in the calendar: {chosen} is a {WEEKDAYS[chosen.weekday()].title()}"
        raise BadAmount(text=text, what=what, example=str(chosen))
    return chosen


def _next_date(day: int, month: int, year: int | None, today: date) -> date | None:
    """Return that day, without a year the next one; None if there is none. 29 February may be years away."""
    for each in range(today.year, today.year + 9) if year is None else (year,):
        try:
            chosen = date(each, month, day)
        except ValueError:
            continue
        if year is not None or chosen >= today:
            return chosen
    return None


def _find(name: str, names: Sequence[str]) -> int | None:
    fits = [number for number, whole in enumerate(names) if len(name) >= 3 and whole.startswith(name)]
    return fits[0] if fits else None
