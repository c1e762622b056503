"""The form fields for limits and expiry."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sublet.access.model.access import AMOUNTS, Limits
from sublet.access.model.access_words import LIMIT_TEXTS, parse_amount, parse_expires

LABELS = {name: (label, hint) for name, (_, _, label, hint) in LIMIT_TEXTS.items()}


def read_grant(form: dict[str, str], now: datetime) -> dict[str, Any]:
    """Read the limits and the last day from a form."""
    typed = {name: text for name in AMOUNTS if (text := form.get(name, "").strip())}
    limits = Limits(**{name: parse_amount(name, text) for name, text in typed.items()})
    until = form.get("expires", "").strip()
    return {"limits": limits, "expires": parse_expires(until, now) if until else None}
