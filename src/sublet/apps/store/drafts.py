"""Jobs of old clients until they are sessions, and the session that each became."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, func, insert, or_, select, update

from sublet.apps.model.draft import Draft
from sublet.apps.store.tables import drafts
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, plain

D = drafts.c
DRAFT = select(D.id, D.person, D.created, D.changed, D.fields, D.session)
ADD = insert(drafts)
GET = DRAFT.where(D.id == bind("draft_id"))
LIST = DRAFT.where(D.person == bind("of_person")).order_by(D.created.desc(), D.id).limit(bind("most"))
OPEN = select(func.count()).where(D.person == bind("of_person"), D.session == "")
SET = update(drafts).where(D.id == bind("draft_id"), D.session == "").values(fields=bind("f"), changed=bind("c"))
KEEP = update(drafts).where(D.id == bind("draft_id")).values(fields=bind("f"), changed=bind("c"))
SUBMIT = update(drafts).where(D.id == bind("draft_id"), D.session == "").values(session=bind("s"), changed=bind("c"))
REOPEN = update(drafts).where(D.id == bind("draft_id"), D.session == bind("s")).values(session="")
DELETE = delete(drafts).where(D.id == bind("draft_id"), D.session == bind("s"))
FORGET = delete(drafts).where(or_(D.changed <= bind("before"), and_(D.session == "", D.changed <= bind("open_before"))))


class DraftStore:
    """The drafts, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, draft: Draft) -> None:
        """Add a draft."""
        self._sql.change(
            ADD,
            {
                "id": draft.id,
                "person": plain(draft.person),
                "created": micros(draft.created),
                "changed": micros(draft.changed),
                "fields": json.dumps(draft.fields),
                "session": draft.session,
            },
        )

    def get(self, id: str) -> Draft | None:
        """Return a draft by id."""
        row = self._sql.row(GET, {"draft_id": plain(id)})
        return None if row is None else _draft(row)

    def of(self, person: str, limit: int = 1000) -> list[Draft]:
        """List a person's drafts, newest first."""
        return [_draft(row) for row in self._sql.rows(LIST, {"of_person": plain(person), "most": limit})]

    def count_open(self, person: str) -> int:
        """Count a person's drafts that weren't submitted."""
        return self._sql.number(OPEN, {"of_person": plain(person)})

    def set(self, draft: Draft) -> bool:
        """Update a draft's fields; return False if it was submitted meanwhile."""
        return self._sql.change(SET, _describe_changes(draft)) > 0

    def keep(self, draft: Draft) -> None:
        """Update a draft's fields, even if it was submitted."""
        self._sql.change(KEEP, _describe_changes(draft))

    def submit(self, id: str, session: str, now: datetime) -> bool:
        """Record the session that a draft became; return False if it was submitted already."""
        return self._sql.change(SUBMIT, {"draft_id": id, "s": session, "c": micros(now)}) > 0

    def reopen(self, id: str, session: str) -> None:
        """Undo a submission that failed."""
        self._sql.change(REOPEN, {"draft_id": id, "s": session})

    def delete(self, draft: Draft) -> bool:
        """Remove a draft; return False if it was submitted or removed meanwhile."""
        return self._sql.change(DELETE, {"draft_id": draft.id, "s": draft.session}) > 0

    def forget(self, before: datetime, open_before: datetime | None = None) -> int:
        """Remove drafts unchanged since then, and unsubmitted ones since another time; return how many."""
        return self._sql.change(FORGET, {"before": micros(before), "open_before": micros(open_before or before)})


def _describe_changes(draft: Draft) -> dict[str, Any]:
    return {"draft_id": draft.id, "f": json.dumps(draft.fields), "c": micros(draft.changed)}


def _draft(row: Row) -> Draft:
    id, person, created, changed, fields, session = row
    return Draft(id, person, moment(created), moment(changed), json.loads(fields), session)
