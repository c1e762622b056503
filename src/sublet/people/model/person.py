"""The person who makes a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Person:
    """The person who makes a request, and what their token allows."""

    name: str
    operator: bool = False
    reviewer: bool = False  # may decide on apps, as operators may too
    scope: tuple[str, ...] = ()  # of their token; empty: everything the person may do
    session: str = ""  # the only session that their token is for; empty: any
    until: datetime | None = None  # when their token expires
    # Invited to someone's personal service: confined to containers, and to what is shared with them
    guest: bool = False
    pending_role: str = ""  # operator or reviewer, which counts once they have a second factor
