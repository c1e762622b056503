"""Sessions as rows, and rows as sessions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import select

from sublet.booking.model.marks import read_marks, write_marks
from sublet.booking.model.offer import Offer
from sublet.booking.model.session import Connector, End, Phase, Session
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.older_rows import gather_offer_options
from sublet.booking.store.tables import sessions
from sublet.kernel.db.sql import Row, dump, micros_or_none, moment_or_none, plain

S = sessions.c
COLUMNS = (
    S.id,
    S.offerset,
    S.person,
    S.name,
    S.kind,
    S.phase,
    S.offer,
    S.created,
    S.modified,
    S.expires,
    S.condition,
    S.start,
    S.until,
    S.started,
    S.ended,
    S.job,
    S.cancel_by,
    S.end,
    S.connectors,
    S.app,
    S.cancel_reason,
    S.lost,
    S.own_id,
    S.marks,
)
SESSION = select(*COLUMNS)

OFFER = TypeAdapter(Offer)
END = TypeAdapter(End)
CONNECTORS = TypeAdapter(tuple[Connector, ...])

TIMES = frozenset({"created", "expires", "start", "until", "started", "ended", "due", "lost"})
WORDS = frozenset({"phase", "condition", "job", "cancel_by", "cancel_reason", "name", "own_id"})


def stored(name: str, value: Any) -> Any:
    """One field of a session, or `due`, as it is stored."""
    if name in TIMES:
        return micros_or_none(value)
    if name in WORDS:
        return plain(str(value))
    if name == "marks":
        return write_marks(value)
    if name == "offer":
        return dump(OFFER, value)
    if name == "end":
        return None if value is None else dump(END, value)
    if name == "connectors":
        return dump(CONNECTORS, value) if value else None
    raise TypeError(f"a session has no {name} that can change")


def session_row(session: Session, due: int | None) -> dict[str, Any]:
    """A session as it is stored."""
    return {
        "id": session.id,
        "offerset": session.offerset,
        "person": plain(session.person),
        "name": plain(session.name),
        "kind": plain(session.kind),
        "platform": session.offer.platform,
        "phase": session.phase.value,
        "offer": dump(OFFER, session.offer),
        "created": micros(session.created),
        "modified": micros(session.modified),
        "expires": micros(session.expires),
        "condition": plain(session.condition),
        "marks": write_marks(session.marks),
        "start": micros_or_none(session.start),
        "until": micros_or_none(session.until),
        "started": micros_or_none(session.started),
        "ended": micros_or_none(session.ended),
        "job": session.job,
        "cancel_by": session.cancel_by,
        "end": stored("end", session.end),
        "connectors": stored("connectors", session.connectors),
        "app": session.app,
        "cancel_reason": plain(session.cancel_reason),
        "lost": micros_or_none(session.lost),
        "own_id": plain(session.own_id),
        "due": due,
        "claim_owner": None,
        "claim_token": None,
        "claim_until": None,
    }


@lru_cache(maxsize=2048)
def _read_offer(text: str) -> Offer:
    """An offer, which is a value: whoever looks at the same session again gets the same one."""
    return OFFER.validate_json(gather_offer_options(text))


def read_session(row: Row) -> Session:
    """A session out of its row."""
    return Session(
        id=row[0],
        offerset=row[1],
        person=row[2],
        name=row[3],
        kind=row[4],
        phase=Phase(row[5]),
        offer=_read_offer(row[6]),
        created=moment(row[7]),
        modified=moment(row[8]),
        expires=moment(row[9]),
        condition=row[10],
        start=moment_or_none(row[11]),
        until=moment_or_none(row[12]),
        started=moment_or_none(row[13]),
        ended=moment_or_none(row[14]),
        job=row[15],
        cancel_by=row[16],
        end=None if row[17] is None else END.validate_json(row[17]),
        connectors=() if row[18] is None else CONNECTORS.validate_json(row[18]),
        app=row[19],
        cancel_reason=row[20],
        lost=moment_or_none(row[21]),
        own_id=row[22],
        marks=read_marks(row[23]),
    )
