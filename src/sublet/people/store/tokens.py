"""Tokens, by which people authenticate over TCP; only the hash of the secret is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, or_, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, moment_or_none, plain
from sublet.people.store.tables import tokens

COLUMNS = (
    tokens.c.id,
    tokens.c.person,
    tokens.c.name,
    tokens.c.created,
    tokens.c.expires,
    tokens.c.operator,
    tokens.c.guest,
    tokens.c.use,
    tokens.c.scope,
    tokens.c.session,
    tokens.c.used,
)
ADD = insert(tokens)
CHECK = select(*COLUMNS).where(
    tokens.c.hash == bind("secret_hash"),
    or_(tokens.c.expires.is_(None), tokens.c.expires > bind("now")),
)
LIST = select(*COLUMNS).where(tokens.c.person == bind("person")).order_by(tokens.c.created, tokens.c.id)
GET = select(*COLUMNS).where(tokens.c.id == bind("token_id"))
REVOKE = delete(tokens).where(tokens.c.id == bind("token_id"))
REVOKE_OWN = REVOKE.where(tokens.c.person == bind("of_person"))
FORGET = delete(tokens).where(tokens.c.person == bind("person"), tokens.c.expires <= bind("now"))
OF_SESSION = select(*COLUMNS).where(tokens.c.session == bind("of_session")).order_by(tokens.c.created, tokens.c.id)
USED = (
    update(tokens)
    .where(tokens.c.id == bind("token_id"), or_(tokens.c.used.is_(None), tokens.c.used < bind("now")))
    .values(used=bind("now"))
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token, without its secret."""

    id: str
    person: str
    name: str
    created: datetime
    expires: datetime | None = None
    operator: bool = False  # whether its holder has an operator's rights
    guest: bool = False  # whether an operator made it for someone else
    use: str = "api"  # or browser, session, once, half-…
    scope: tuple[str, ...] = ()  # what its holder may do; empty: all that the person may
    session: str = ""  # the one session that it is for; empty: any
    used: datetime | None = None  # last use


class TokenStore:
    """The tokens, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, token: Token, secret: str) -> None:
        """Store a token, with the hash of its secret."""
        self._sql.change(
            ADD,
            {
                "id": token.id,
                "person": plain(token.person),
                "name": plain(token.name),
                "hash": _hash(secret),
                "created": micros(token.created),
                "expires": micros_or_none(token.expires),
                "operator": int(token.operator),
                "guest": int(token.guest),
                "use": token.use,
                "scope": " ".join(token.scope),
                "session": token.session,
                "used": micros_or_none(token.used),
            },
        )

    def check(self, secret: str, now: datetime) -> Token | None:
        """Return the token of this secret, if it exists and hasn't expired."""
        row = self._sql.row(CHECK, {"secret_hash": _hash(secret), "now": micros(now)})
        return None if row is None else _token(row)

    def get(self, id: str) -> Token | None:
        """Return a token by id."""
        row = self._sql.row(GET, {"token_id": plain(id)})
        return None if row is None else _token(row)

    def of_session(self, session: str) -> list[Token]:
        """List the tokens for one session, oldest first."""
        return [_token(row) for row in self._sql.rows(OF_SESSION, {"of_session": plain(session)})]

    def list(self, person: str) -> list[Token]:
        """List a person's tokens, oldest first."""
        return [_token(row) for row in self._sql.rows(LIST, {"person": plain(person)})]

    def revoke(self, id: str, person: str | None = None) -> bool:
        """Revoke a token, of this person if one is given; return whether there was one."""
        if person is None:
            return self._sql.change(REVOKE, {"token_id": plain(id)}) > 0
        return self._sql.change(REVOKE_OWN, {"token_id": plain(id), "of_person": plain(person)}) > 0

    def forget(self, person: str, now: datetime) -> None:
        """Remove a person's expired tokens."""
        self._sql.change(FORGET, {"person": plain(person), "now": micros(now)})

    def use(self, id: str, now: datetime) -> None:
        """Record a use of the token."""
        self._sql.change(USED, {"token_id": id, "now": micros(now)})


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token(row: Row) -> Token:
    id, person, name, created, expires, operator, guest, use, scope, session, used = row
    return Token(
        id,
        person,
        name,
        moment(created),
        moment_or_none(expires),
        bool(operator),
        bool(guest),
        use,
        tuple(scope.split()),
        session,
        moment_or_none(used),
    )
