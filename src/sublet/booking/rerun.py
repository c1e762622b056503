"""Asking again for what a session ran, with changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sublet.booking.asking import Asking
from sublet.booking.contents import Contents
from sublet.booking.documents.rerun import with_changes
from sublet.booking.model.giving_way import USUAL, Precedence
from sublet.booking.model.session import OfferSet
from sublet.booking.sessions import Sessions
from sublet.kernel.document import parse_document
from sublet.people.model.person import Person


@dataclass
class Rerun:
    """Asks again for what ran before."""

    contents: Contents
    asking: Asking
    sessions: Sessions

    async def again(
        self,
        name: str,
        person: Person,
        changes: Mapping[str, Any],
        set: Mapping[str, Any] | None = None,
        words: Mapping[str, str] | None = None,
        precedence: Precedence = USUAL,
        key: str | None = None,
    ) -> tuple[OfferSet, tuple[str, ...]]:
        """Return offers for a session's request with changes applied, and each change in words."""
        session = await self.contents.session_to_read(name, person, "request")
        old = await self.sessions.offerset_of(session)
        document = parse_document(old.document.encode(), old.content_type)
        new, notes = with_changes(document, changes, set or {}, words or {})
        asked = await self.asking.read(json.dumps(new).encode(), "application/json", person)
        return await self.asking.ask(person, replace(asked, precedence=precedence), key=key), notes
