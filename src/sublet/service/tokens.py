"""Tokens: what a program shows to be let in over TCP."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from sublet.errors import NotFound, NotYours
from sublet.service.connect import Connect
from sublet.service.desk import Person
from sublet.store.tokens import Token as Token  # also for those who show it

PREFIX = "sublet_"


class Tokens(Connect):
    """Make, list and revoke tokens; only their hashes are kept."""

    async def make_token(
        self, person: Person, name: str = "", expires_in: timedelta | None = None, for_person: str | None = None
    ) -> tuple[Token, str]:
        """A new token and its secret, which is shown this once. Only an operator makes them for others."""
        owner = for_person or person.name
        if owner != person.name and not person.operator:
            raise NotYours(noun="token")
        now = self.now()
        expires: datetime | None = now + expires_in if expires_in else None
        secret = PREFIX + secrets.token_urlsafe(32)
        operator = person.operator and owner == person.name
        guest = owner != person.name or person.guest
        token = Token(str(uuid4()), owner, name, now, expires, operator, guest)
        await self.store.write(lambda tx: tx.tokens.add(token, secret))
        return token, secret

    async def tokens(self, person: Person) -> Sequence[Token]:
        """A person's tokens, without their secrets."""
        return await self.store.read(lambda tx: tx.tokens.list(person.name))

    async def revoke_token(self, person: Person, id: str) -> None:
        """Make a token worthless."""
        if not await self.store.write(lambda tx: tx.tokens.revoke(id, person.name)):
            raise NotFound(noun="token", name=id, hint="`sublet token list` lists them.")

    async def token_of(self, secret: str) -> Token | None:
        """The token that this secret belongs to, if it is good."""
        return await self.store.read(lambda tx: tx.tokens.check(secret, self.now()))

    async def bearer(self, secret: str) -> Person | None:
        """Whose token this is, if it is good."""
        token = await self.token_of(secret)
        personal = self.settings.mode == "personal"
        return Person(token.person, token.operator, guest=token.guest and personal) if token else None
