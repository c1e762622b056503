"""The fields of a form that say how much someone may use, and until when."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sublet.access.model.access import AMOUNTS, Limits
from sublet.access.model.access_words import parse_amount, parse_expires

LABELS = {
    "cores": ("Cores", "of one session, over all its nodes"),
    "memory": ("Memory", "of one session: 64GiB"),
    "gpus": ("GPUs", "of one session"),
    "nodes": ("Nodes", "of one session"),
    "time": ("Time", "of one session: 12h"),
    "hours": ("Core-hours", "of one session"),
    "jobs": ("Sessions", "at once"),
    "hours_month": ("Core-hours a month", "a calendar month, in UTC"),
}


def granted(form: dict[str, str], now: datetime) -> dict[str, Any]:
    """The limits and the last day that a form names."""
    typed = {name: text for name in AMOUNTS if (text := form.get(name, "").strip())}
    limits = Limits(**{name: parse_amount(name, text) for name, text in typed.items()})
    until = form.get("expires", "").strip()
    return {"limits": limits, "expires": parse_expires(until, now) if until else None}
