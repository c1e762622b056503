"""Tokens, by which programs authenticate over TCP."""

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
from sublet.people.store.tokens import Token as Token  # also imported from here by code that shows tokens
from sublet.store.store import Store
from sublet.store.tx import Tx

PREFIX = "sublet_"
HALF = "half-"  # prefix of a token's use while the second factor is missing
ONCE = "once"  # the use of a code that a terminal exchanges for a token
SESSION = "session"  # the use of a token for one session
MOST_OF_SESSION = 10  # beyond this many for one session, the oldest is revoked
SHOWN = timedelta(minutes=1)  # precision of a token's last use


@dataclass
class Tokens:
    """Makes, lists and revokes tokens; only their hashes are stored."""

    settings: Settings
    store: Store
    now: Clock
    names: Names
    standing: Standing
    sessions: Sessions
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

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
        """Make a token, and return it with its secret, which is shown only once; only operators make them for others.

        Its scope and lifetime can't exceed those of the token that its maker uses.
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
        """Make a token for one session only, valid until the session is deleted or its files' retention ends."""
        session = await self.sessions.get(name, person)
        if session.person != person.name:
            raise NotYours(noun="session")
        token = self._for_session(session)
        return token, await self._keep(token, person, host)

    async def accept_with_token(
        self, name: str, person: Person, *, key: str | None = None, host: str = ""
    ) -> tuple[Session, str]:
        """Accept an offer and make a token for its session, in one write.

        The secret is empty if the session is another's.
        """
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
        """Return when a new token expires: as requested, but never after its maker's own.

        In a gateway always limited.
        """
        if self.knows_people:
            longest = self.settings.tokens.longest
            if lasts and lasts > longest:
                detail = f"a token lasts {describe_duration(longest)} at most"
                raise BadRequest(detail=detail, hint="Ask for less; another can be made when it has expired.")
            lasts = lasts or min(self.settings.tokens.lasts, longest)
        expires = now + lasts if lasts else None
        return min(expires or person.until, person.until) if person.until else expires

    async def tokens(self, person: Person) -> Sequence[Token]:
        """List a person's tokens, without secrets and without those for single sessions."""
        tokens = await self.store.read(lambda tx: tx.tokens.list(person.name))
        return [token for token in tokens if token.use != SESSION]

    async def revoke_token(self, person: Person, id: str, *, host: str = "") -> None:
        """Revoke a token; an operator can revoke anyone's."""

        def work(tx: Tx) -> bool:
            revoked = tx.tokens.revoke(id, None if person.operator else person.name)
            if revoked:
                tx.audit.add(AuditEntry(self.now(), person.name, "token.revoke", "token", id, {}, host))
            return revoked

        if not await self.store.write(work):
            raise NotFound(noun="token", name=id, hint="`sublet token list` lists them.")

    async def token_of(self, secret: str) -> Token | None:
        """Return the valid token of a secret, or None; its use is recorded to the minute."""
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
        """Whether a session's token is still valid: the session is active, or its files are still kept."""
        if session is None:
            return False
        return session.phase not in OVER or now < (session.ended or session.modified) + self.settings.keep

    async def bearer(self, secret: str) -> Person | None:
        """Return the person of a token and what it is for, or None if it isn't valid; raise Blocked if they are."""
        token = await self.token_of(secret)
        return await self.holder(token) if token else None

    async def holder(self, token: Token) -> Person | None:
        """Return the person of a token with their current role, or raise Blocked.

        A token that is only a step of a sign-in belongs to nobody: None.
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
    """Store a token, and record it in the audit log; for a session with too many tokens, revoke the oldest."""
    if token.session:
        for old in tx.tokens.of_session(token.session)[: -(MOST_OF_SESSION - 1)]:
            tx.tokens.revoke(old.id)
    tx.tokens.add(token, secret)
    detail = {"for": token.person, "scope": " ".join(token.scope), "session": token.session}
    facts = {word: value for word, value in detail.items() if value}
    tx.audit.add(AuditEntry(token.created, maker.name, "token.make", "token", token.id, facts, host))


MORE = "Sign in, or use a token without a scope: `sublet token make` by whoever holds that."
