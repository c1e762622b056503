"""Requests for access: who wants to use what and why, and the operator's answer."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, insert, select, update

from sublet.access.model.access import AccessRequest
from sublet.access.store.tables import access_requests
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, moment_or_none, plain

A = access_requests.c
REQUEST = select(A.id, A.person, A.noun, A.name, A.why, A.created, A.state, A.decided, A.by, A.answer, A.rule)
GET = REQUEST.where(A.id == bind("request_id"))
BY_PREFIX = REQUEST.where(A.id >= bind("low"), A.id < bind("high")).order_by(A.id).limit(100)
OPEN = REQUEST.where(
    A.person == bind("of_person"), A.noun == bind("of_noun"), A.name == bind("of_name"), A.state == "open"
)
COUNT = select(func.count()).where(A.person == bind("of_person"), A.state == "open")
ADD = insert(access_requests)
DECIDE = (
    update(access_requests)
    .where(A.id == bind("request_id"), A.state == "open")
    .values(
        state=bind("new_state"),
        decided=bind("new_decided"),
        by=bind("new_by"),
        answer=bind("new_answer"),
        rule=bind("new_rule"),
    )
)


class AccessRequests:
    """The requests for access, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, request: AccessRequest) -> None:
        """Add a request."""
        self._sql.change(
            ADD,
            {
                "id": request.id,
                "person": plain(request.person),
                "noun": request.noun,
                "name": plain(request.name),
                "why": plain(request.why),
                "created": micros(request.created),
                "state": request.state,
                "decided": micros_or_none(request.decided),
                "by": plain(request.by),
                "answer": plain(request.answer),
                "rule": request.rule,
            },
        )

    def find(self, name: str) -> list[AccessRequest]:
        """Return the request with this id, or some of those whose ids begin with it."""
        if row := self._sql.row(GET, {"request_id": plain(name)}):
            return [_request(row)]
        low = name.lower()
        if not low or not set(low) <= set("0123456789abcdef-"):
            return []
        return [_request(row) for row in self._sql.rows(BY_PREFIX, {"low": low, "high": low + "g"})]

    def open(self, person: str, noun: str, name: str) -> AccessRequest | None:
        """Return a person's open request for this target, or None."""
        row = self._sql.row(OPEN, {"of_person": plain(person), "of_noun": noun, "of_name": plain(name)})
        return _request(row) if row else None

    def count_open(self, person: str) -> int:
        """Count a person's open requests."""
        return self._sql.number(COUNT, {"of_person": plain(person)})

    def list(self, *, person: str = "", state: str = "", limit: int = 100) -> list[AccessRequest]:
        """List requests, newest first: all, one person's, or those in one state."""
        query = REQUEST.order_by(A.created.desc(), A.id).limit(limit)
        query = query.where(A.person == plain(person)) if person else query
        query = query.where(A.state == state) if state else query
        return [_request(row) for row in self._sql.select(query)]

    def decide(self, id: str, state: str, *, now: datetime, by: str, answer: str, rule: str = "") -> bool:
        """Decide an open request; return False if it was decided already."""
        decided = {
            "request_id": id,
            "new_state": state,
            "new_decided": micros(now),
            "new_by": plain(by),
            "new_answer": plain(answer),
            "new_rule": rule,
        }
        return self._sql.change(DECIDE, decided) > 0


def _request(row: Row) -> AccessRequest:
    id, person, noun, name, why, created, state, decided, by, answer, rule = row
    return AccessRequest(id, person, noun, name, why, moment(created), state, moment_or_none(decided), by, answer, rule)
