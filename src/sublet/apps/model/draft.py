"""Jobs as old clients make them: created empty, set field by field, then submitted."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Draft:
    """The fields set so far, and the session that the draft has become."""

    id: str
    person: str
    created: datetime
    changed: datetime
    fields: Mapping[str, Any] = field(default_factory=dict)  # by the old client's names
    session: str = ""  # once it is submitted


def new_id(now: datetime) -> str:
    """Return an id in the form that old clients know: seconds since 1970, and random letters."""
    return f"{int(now.timestamp())}{''.join(secrets.choice(LETTERS) for _ in range(10))}"
