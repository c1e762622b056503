"""Tokens: what a program shows to be let in over TCP."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from sublet.booking.model.phases import OVER
from sublet.booking.model.session import Session
from sublet.booking.ports import Names
from sublet.booking.sessions import Sessions
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotFound, NotYours, OutOfScope
from sublet.kernel.settings import Settings
from sublet.kernel.texts import describe_duration
from sublet.people.blocking import explain_block
from sublet.people.model.person import Person
from sublet.people.model.scopes import read_scope, within
from sublet.people.standing import Standing
from sublet.people.store.tokens import Token as Token  # also for those who show it
from sublet.store.store import Store
from sublet.store.tx import Tx

PREFIX = "sublet_"
HALF = "half-"  # the use of a token for which the second factor is still missing begins so
ONCE = "once"  # the use of a code that a terminal changes into a token
SESSION = "session"  # the use of a token that is for one session
MOST_OF_SESSION = 10  # when there are more for one session, the oldest goes
SHOWN = timedelta(minutes=1)  # how exactly it is known when a token was last shown


@dataclass
class Tokens:
    """Make, list and revoke tokens; only their hashes are kept."""

    settings: Settings
    store: Store
    now: Clock
    names: Names
    standing: Standing
    sessions: Sessions
    knows_people: bool  # people sign in here; else there is its owner, and who was given a token

    async def make_token(
        self,
        person: Person,
        name: str = "",
        expires_in: timedelta | None = None,
        for_person: str | None = None,
        *,
        scope: Sequence[str] = (),
        host: str = "",
    ) -> tuple[Token, str]:
        """A new token and its secret, which is shown this once. Only an operator makes them for others.

        It is for no more, and lasts no longer, than the one that its maker holds.
        """
        owner = await self.names.find_name(for_person) if for_person else person.name
        if owner != person.name and not person.operator:
            raise NotYours(noun="token")
        words = read_scope(scope) or person.scope
        if person.session or not within(words, person.scope):
            raise OutOfScope("A token can't make one that is for more than itself.", hint=MORE)
        now = self.now()
        operator = person.operator and owner == person.name
        guest = owner != person.name or person.guest
        expires = self._expires(person, now, expires_in)
        token = Token(str(uuid4()), owner, name, now, expires, operator, guest, scope=words)
        return token, await self._keep(token, person, host)

    async def make_session_token(self, person: Person, name: str, *, host: str = "") -> tuple[Token, str]:
        """A token that is for one session only, until that is deleted or its files' keep time is over."""
        session = await self.sessions.get(name, person)
        if session.person != person.name:
            raise NotYours(noun="session")
        token = self._for_session(session)
        return token, await self._keep(token, person, host)

    async def accept_with_token(
        self, name: str, person: Person, *, key: str | None = None, host: str = ""
    ) -> tuple[Session, str]:
        """Take an offer and, in the same write, make a token for that session only; empty if it is another's."""
        secret = _new_secret()

        def also(tx: Tx, session: Session) -> Session:
            if session.person == person.name:
                _add(tx, self._for_session(session), secret, person, host)
            return session

        session = await self.sessions.accept(name, person, key=key, also=also)
        return session, secret if session.person == person.name else ""

    def _for_session(self, session: Session) -> Token:
        return Token(str(uuid4()), session.person, "", self.now(), use=SESSION, session=session.id)

    async def _keep(self, token: Token, maker: Person, host: str) -> str:
        secret = _new_secret()
        await self.store.write(lambda tx: _add(tx, token, secret, maker, host))
        return secret

    def _expires(self, person: Person, now: datetime, lasts: timedelta | None) -> datetime | None:
        """When a new token expires: as asked, but in a gateway not never, and not after its maker's own."""
        if self.knows_people:
            longest = self.settings.tokens.longest
            if lasts and lasts > longest:
                detail = f"a token lasts {describe_duration(longest)} at most"
                raise BadRequest(detail=detail, hint="Ask for less; another can be made when it has expired.")
            lasts = lasts or min(self.settings.tokens.lasts, longest)
        expires = now + lasts if lasts else None
        return min(expires or person.until, person.until) if person.until else expires

    async def tokens(self, person: Person) -> Sequence[Token]:
        """A person's tokens, without their secrets; those of single sessions are not among them."""
        tokens = await self.store.read(lambda tx: tx.tokens.list(person.name))
        return [token for token in tokens if token.use != SESSION]

    async def revoke_token(self, person: Person, id: str, *, host: str = "") -> None:
        """Make a token worthless; an operator can do that to anyone's."""

        def work(tx: Tx) -> bool:
            revoked = tx.tokens.revoke(id, None if person.operator else person.name)
            if revoked:
                tx.audit.add(AuditEntry(self.now(), person.name, "token.revoke", "token", id, {}, host))
            return revoked

        if not await self.store.write(work):
            raise NotFound(noun="token", name=id, hint="`sublet token list` lists them.")

    async def token_of(self, secret: str) -> Token | None:
        """The token that this secret belongs to, if it is good; that it was shown is remembered to the minute."""
        now = self.now()

        def work(tx: Tx) -> Token | None:
            token = tx.tokens.check(secret, now)
            if token and token.session and not self._lasts(tx.sessions.get(token.session), now):
                return None
            return token

        token = await self.store.glance(work)
        if token and (token.used is None or now - token.used >= SHOWN):
            await self.store.write(lambda tx: tx.tokens.use(token.id, now))
        return token

    def _lasts(self, session: Session | None, now: datetime) -> bool:
        """Whether a session is still there for its token: under way, or ended and its files still kept."""
        if session is None:
            return False
        return session.phase not in OVER or now < (session.ended or session.modified) + self.settings.keep

    async def bearer(self, secret: str) -> Person | None:
        """Whose token this is, if it is good, and what it is for; Blocked if they are."""
        token = await self.token_of(secret)
        return await self.holder(token) if token else None

    async def holder(self, token: Token) -> Person | None:
        """Whose token it is, with the part that they have now, and what it is for; Blocked if they are.

        One that is only a step of signing in is nobody's.
        """
        if token.use == ONCE or token.use.startswith(HALF):
            return None
        person = await self.standing.as_now(
            Person(
                token.person,
                token.operator,
                guest=token.guest and not self.knows_people,
                scope=token.scope,
                session=token.session,
                until=token.expires,
            )
        )
        if person is None:
            raise await self.store.read(lambda tx: explain_block(tx, token.person))
        return replace(person, operator=False, reviewer=False) if token.session else person


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def _add(tx: Tx, token: Token, secret: str, maker: Person, host: str) -> None:
    """Let a token count, and write that down; of too many for one session the oldest go."""
    if token.session:
        for old in tx.tokens.of_session(token.session)[: -(MOST_OF_SESSION - 1)]:
            tx.tokens.revoke(old.id)
    tx.tokens.add(token, secret)
    detail = {"for": token.person, "scope": " ".join(token.scope), "session": token.session}
    facts = {word: value for word, value in detail.items() if value}
    tx.audit.add(AuditEntry(token.created, maker.name, "token.make", "token", token.id, facts, host))


MORE = "Sign in, or use a token without a scope: `sublet token make` by whoever holds that."
