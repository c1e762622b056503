"""Groups, and their members."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import BigInteger, cast, delete, insert, null, select, union_all

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, plain
from sublet.people.model.people import Group
from sublet.people.store.tables import groups, members, memberships

G, M, A = groups.c, members.c, memberships.c
ADD = insert(groups)
GET = select(G.name, G.created, G.note).where(G.name == bind("of"))
LIST = select(G.name, G.created, G.note).order_by(G.name)
MEMBERS = select(M.person).where(M.group == bind("of")).order_by(M.person)
OF = select(M.group).where(M.person == bind("who")).order_by(M.group)
EVERYWHERE = union_all(
    select(M.group.label("name"), cast(null(), BigInteger).label("until")).where(M.person == bind("who")),
    select(A.name, A.until).where(A.person == bind("who")),
)
CONFIRMED = select(A.name, A.until).where(A.person == bind("who"), A.issuer == bind("by"))
CONFIRM = insert(memberships)
UNCONFIRM = delete(memberships).where(A.person == bind("who"), A.issuer == bind("by"))
JOIN = insert(members).values(group=bind("of"), person=bind("who"))
IS_IN = select(M.person).where(M.group == bind("of"), M.person == bind("who"))
LEAVE = delete(members).where(M.group == bind("of"), M.person == bind("who"))
EMPTY = delete(members).where(M.group == bind("of"))
REMOVE = delete(groups).where(G.name == bind("of"))


class GroupStore:
    """The groups, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, group: Group) -> None:
        """Create an empty group."""
        self._sql.change(ADD, {"name": group.name, "created": micros(group.created), "note": plain(group.note)})

    def get(self, name: str) -> Group | None:
        """Return a group by name."""
        row = self._sql.row(GET, {"of": plain(name)})
        return None if row is None else self._group(row)

    def list(self) -> list[Group]:
        """List all groups, by name."""
        return [self._group(row) for row in self._sql.rows(LIST, {})]

    def of(self, person: str) -> tuple[str, ...]:
        """Return the groups of a person."""
        return tuple(row[0] for row in self._sql.recall(OF, {"who": plain(person)}))

    def everywhere(self, person: str, now: datetime) -> tuple[str, ...]:
        """Return the groups of a person, including those that issuers currently confirm."""
        rows, moment_ = self._sql.recall(EVERYWHERE, {"who": plain(person)}), micros(now)
        return tuple(name for name, until in rows if name and (until is None or until > moment_))

    def list_confirmed(self, person: str, issuer: str) -> tuple[frozenset[str], datetime | None]:
        """Return the groups that an issuer last confirmed, and until when that counts; None if it never did."""
        rows = self._sql.rows(CONFIRMED, {"who": plain(person), "by": issuer})
        until = min((until for _, until in rows), default=None)
        return frozenset(name for name, _ in rows if name), None if until is None else moment(until)

    def confirm(self, person: str, issuer: str, names: Collection[str], until: datetime) -> None:
        """Replace the groups that an issuer confirms for a person."""
        self._sql.change(UNCONFIRM, {"who": plain(person), "by": issuer})
        row = {"person": plain(person), "issuer": issuer, "until": micros(until)}
        self._sql.change_many(CONFIRM, [{**row, "name": plain(name)} for name in (*names, "")])

    def join(self, name: str, person: str) -> bool:
        """Add someone to a group; return whether they were new."""
        who = {"of": plain(name), "who": plain(person)}
        if self._sql.row(IS_IN, who):
            return False
        self._sql.change(JOIN, who)
        return True

    def leave(self, name: str, person: str) -> bool:
        """Remove someone from a group; return whether they were in it."""
        return self._sql.change(LEAVE, {"of": plain(name), "who": plain(person)}) > 0

    def remove(self, name: str) -> bool:
        """Remove a group; return whether it was there."""
        self._sql.change(EMPTY, {"of": plain(name)})
        return self._sql.change(REMOVE, {"of": plain(name)}) > 0

    def _group(self, row: Row) -> Group:
        name, created, note = row
        members = tuple(member[0] for member in self._sql.rows(MEMBERS, {"of": name}))
        return Group(name, moment(created), note, members)
