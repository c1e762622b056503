"""Groups, and who is in them."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, plain
from sublet.people.model.people import Group
from sublet.people.store.tables import groups, members

G, M = groups.c, members.c
ADD = insert(groups)
GET = select(G.name, G.created, G.note).where(G.name == bind("of"))
LIST = select(G.name, G.created, G.note).order_by(G.name)
MEMBERS = select(M.person).where(M.group == bind("of")).order_by(M.person)
OF = select(M.group).where(M.person == bind("who")).order_by(M.group)
JOIN = insert(members).values(group=bind("of"), person=bind("who"))
IS_IN = select(M.person).where(M.group == bind("of"), M.person == bind("who"))
LEAVE = delete(members).where(M.group == bind("of"), M.person == bind("who"))
EMPTY = delete(members).where(M.group == bind("of"))
REMOVE = delete(groups).where(G.name == bind("of"))


class GroupStore:
    """The groups, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def add(self, group: Group) -> None:
        """Make a group, with nobody in it."""
        self._sql.change(ADD, {"name": group.name, "created": micros(group.created), "note": plain(group.note)})

    def get(self, name: str) -> Group | None:
        """One, by its name."""
        row = self._sql.row(GET, {"of": plain(name)})
        return None if row is None else self._group(row)

    def list(self) -> list[Group]:
        """All, by name."""
        return [self._group(row) for row in self._sql.rows(LIST, {})]

    def of(self, person: str) -> tuple[str, ...]:
        """The groups that someone is in."""
        return tuple(row[0] for row in self._sql.recall(OF, {"who": plain(person)}))

    def join(self, name: str, person: str) -> bool:
        """Take someone in; whether they were not there yet."""
        who = {"of": plain(name), "who": plain(person)}
        if self._sql.row(IS_IN, who):
            return False
        self._sql.change(JOIN, who)
        return True

    def leave(self, name: str, person: str) -> bool:
        """Let someone go; whether they were there."""
        return self._sql.change(LEAVE, {"of": plain(name), "who": plain(person)}) > 0

    def remove(self, name: str) -> bool:
        """Forget a group; whether it was there."""
        self._sql.change(EMPTY, {"of": plain(name)})
        return self._sql.change(REMOVE, {"of": plain(name)}) > 0

    def _group(self, row: Row) -> Group:
        name, created, note = row
        members = tuple(member[0] for member in self._sql.rows(MEMBERS, {"of": name}))
        return Group(name, moment(created), note, members)
