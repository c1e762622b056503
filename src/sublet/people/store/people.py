"""The known people, and their identities."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, moment_or_none, plain
from sublet.people.model.people import Identity, Known, Role
from sublet.people.store.tables import factors, identities, members, memberships, people, tokens

P, I = people.c, identities.c  # noqa: E741 - as the tables begin
COLUMNS = (P.name, P.role, P.created, P.seen, P.blocked, P.by)
ADD = insert(people)
GET = select(*COLUMNS).where(P.name == bind("of"))
FIND = select(*COLUMNS).where(I.kind == bind("k"), I.value == bind("v"), P.name == I.person)
SET_ROLE = update(people).where(P.name == bind("of")).values(role=bind("r"))
SET_SEEN = update(people).where(P.name == bind("of")).values(seen=bind("s"))
SET_BLOCKED = update(people).where(P.name == bind("of")).values(blocked=bind("b"))
OWNED = (
    (factors, factors.c.person),
    (identities, I.person),
    (members, members.c.person),
    (memberships, memberships.c.person),
    (tokens, tokens.c.person),
    (people, P.name),
)
REMOVE = tuple(delete(table).where(column == bind("of")) for table, column in OWNED)
ADD_IDENTITY = insert(identities)
IDENTITIES = select(I.kind, I.value, I.person, I.created).where(I.person == bind("of")).order_by(I.kind, I.value)
REMOVE_IDENTITY = delete(identities).where(I.kind == bind("k"), I.value == bind("v"), I.person == bind("of"))


class PeopleStore:
    """The people, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, known: Known) -> None:
        """Add a person, with the address that is their name as an identity."""
        row = {"name": plain(known.name), "role": known.role.value, "created": micros(known.created)}
        self._sql.change(ADD, row | {"seen": None, "blocked": None, "by": plain(known.by)})
        self.add_identity(Identity("email", known.name, known.name, known.created))

    def get(self, name: str) -> Known | None:
        """Return a person by name."""
        return _read_known(self._sql.row(GET, {"of": plain(name)}))

    def find(self, kind: str, value: str) -> Known | None:
        """Return the person with this identity."""
        rows = self._sql.recall(FIND, {"k": plain(kind), "v": plain(value)})
        return _read_known(rows[0] if rows else None)

    def set_role(self, name: str, role: Role) -> None:
        """Change a person's role."""
        self._sql.change(SET_ROLE, {"of": plain(name), "r": role.value})

    def set_seen(self, name: str, seen: datetime) -> None:
        """Record a person's sign-in."""
        self._sql.change(SET_SEEN, {"of": plain(name), "s": micros(seen)})

    def set_blocked(self, name: str, why: str | None) -> None:
        """Block a person with a reason, or unblock them with None."""
        self._sql.change(SET_BLOCKED, {"of": plain(name), "b": None if why is None else plain(why)})

    def remove(self, name: str) -> None:
        """Remove a person, with their identities, memberships and tokens."""
        for statement in REMOVE:
            self._sql.change(statement, {"of": plain(name)})

    def add_identity(self, identity: Identity) -> None:
        """Add an identity."""
        row = {"kind": plain(identity.kind), "value": plain(identity.value), "person": plain(identity.person)}
        self._sql.change(ADD_IDENTITY, row | {"created": micros(identity.created)})

    def identities(self, name: str) -> list[Identity]:
        """Return a person's identities."""
        return [
            Identity(kind, value, person, moment(created))
            for kind, value, person, created in self._sql.recall(IDENTITIES, {"of": plain(name)})
        ]

    def remove_identity(self, name: str, kind: str, value: str) -> bool:
        """Remove an identity of a person; return whether they had it."""
        return self._sql.change(REMOVE_IDENTITY, {"of": plain(name), "k": plain(kind), "v": plain(value)}) > 0

    def list(
        self, role: Role | None = None, *, blocked: bool = False, after: str = "", limit: int = 1000
    ) -> list[Known]:
        """List people by name: all, those with a role, or those who are blocked."""
        query = select(*COLUMNS).where(P.name > plain(after)).order_by(P.name).limit(limit)
        query = query.where(P.role == role.value) if role else query
        query = query.where(P.blocked.is_not(None)) if blocked else query
        return [known for row in self._sql.select(query) if (known := _read_known(row))]


def _read_known(row: Row | None) -> Known | None:
    if row is None:
        return None
    name, role, created, seen, blocked, by = row
    return Known(name, Role(role), moment(created), moment_or_none(seen), blocked, by)
