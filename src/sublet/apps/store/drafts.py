"""Jobs of old clients, until they are sessions, and which session each became."""

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
        """Of this transaction."""
        self._sql = sql

    def add(self, draft: Draft) -> None:
        """A new one."""
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
        """One, by its id."""
        row = self._sql.row(GET, {"draft_id": plain(id)})
        return None if row is None else _draft(row)

    def of(self, person: str, limit: int = 1000) -> list[Draft]:
        """A person's, newest first."""
        return [_draft(row) for row in self._sql.rows(LIST, {"of_person": plain(person), "most": limit})]

    def count_open(self, person: str) -> int:
        """How many of a person's were not submitted."""
        return self._sql.number(OPEN, {"of_person": plain(person)})

    def set(self, draft: Draft) -> bool:
        """Keep other fields; False if it was submitted meanwhile."""
        return self._sql.change(SET, _describe_changes(draft)) > 0

    def keep(self, draft: Draft) -> None:
        """Keep other fields, though it was submitted."""
        self._sql.change(KEEP, _describe_changes(draft))

    def submit(self, id: str, session: str, now: datetime) -> bool:
        """It has become this session; False if it was one already."""
        return self._sql.change(SUBMIT, {"draft_id": id, "s": session, "c": micros(now)}) > 0

    def reopen(self, id: str, session: str) -> None:
        """It has not become this session after all."""
        self._sql.change(REOPEN, {"draft_id": id, "s": session})

    def delete(self, draft: Draft) -> bool:
        """Remove it; False if it was submitted or removed meanwhile."""
        return self._sql.change(DELETE, {"draft_id": draft.id, "s": draft.session}) > 0

    def forget(self, before: datetime, open_before: datetime | None = None) -> int:
        """Remove those that nobody touched since then, and those not submitted since another time; how many."""
        return self._sql.change(FORGET, {"before": micros(before), "open_before": micros(open_before or before)})


def _describe_changes(draft: Draft) -> dict[str, Any]:
    return {"draft_id": draft.id, "f": json.dumps(draft.fields), "c": micros(draft.changed)}


def _draft(row: Row) -> Draft:
    id, person, created, changed, fields, session = row
    return Draft(id, person, moment(created), moment(changed), json.loads(fields), session)
