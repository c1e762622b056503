"""Turns at an account's site; the account's row is locked first, so that no two processes give the same place away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from sublet.access.store.tables import accounts, turns
from sublet.booking.model.fair_share import Turn, next_turns
from sublet.booking.model.session import Session
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Sql, bind, moment_or_none, plain

T = turns.c
LOCK = select(accounts.c.capacity).where(accounts.c.name == bind("of_account")).with_for_update()
ALL = select(T.session, T.person, T.asked, T.taken).where(T.account == bind("of_account"))
KNOWN = select(T.account).where(T.session == bind("of_session"))
ASK = insert(turns)
TAKE = update(turns).where(T.session == bind("of_session")).values(taken=bind("now"))
END = delete(turns).where(T.session == bind("of_session"))


@dataclass(frozen=True, slots=True)
class SharePlace:
    """Whether a session has a place at the site, how many sessions have one, and how many may."""

    taken: bool
    there: int
    capacity: int


class Turns:
    """The turns, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def ask(self, session: Session, now: datetime) -> tuple[SharePlace, Sequence[str]]:
        """Queue a session at its account and give out free places; return its own, and the sessions whose turn came."""
        account = session.offer.platform
        capacity = self._lock(account)
        if capacity is None:
            return SharePlace(True, 0, 0), ()
        if session.id not in {turn.session for turn in self._all(account)}:
            row = {"session": session.id, "account": account, "person": plain(session.person)}
            self._sql.change(ASK, {**row, "asked": micros(now), "taken": None})
        chosen = self._take(account, capacity, now)
        there = [turn.session for turn in self._all(account) if turn.taken]
        return SharePlace(session.id in there, len(there), capacity), chosen

    def end(self, session: str, now: datetime) -> Sequence[str]:
        """Remove a session that is no longer at the site; return the sessions whose turn it is now."""
        row = self._sql.row(KNOWN, {"of_session": session})
        if row is None:
            return ()
        capacity = self._lock(row[0])
        self._sql.change(END, {"of_session": session})
        return self._take(row[0], capacity, now) if capacity is not None else ()

    def share_again(self, account: str, now: datetime) -> Sequence[str]:
        """Give out places after the capacity has changed; return the sessions whose turn it is now."""
        capacity = self._lock(account)
        return self._take(account, capacity, now) if capacity is not None else ()

    def of(self, account: str) -> list[Turn]:
        """Return the turns at an account: sessions at the site, and those that wait."""
        return self._all(account)

    def _lock(self, account: str) -> int | None:
        row = self._sql.row(LOCK, {"of_account": account})
        return None if row is None else int(row[0])

    def _all(self, account: str) -> list[Turn]:
        rows = self._sql.rows(ALL, {"of_account": account})
        return [Turn(id, person, moment(asked), moment_or_none(taken)) for id, person, asked, taken in rows]

    def _take(self, account: str, capacity: int, now: datetime) -> Sequence[str]:
        chosen = next_turns(self._all(account), capacity)
        for session in chosen:
            self._sql.change(TAKE, {"of_session": session, "now": micros(now)})
        return chosen
