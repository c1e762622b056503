"""Issues the token after a sign-in: whole, or half until the second factor is shown."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from sublet.booking.recorded_clock import is_clock_doubted
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.settings import Settings
from sublet.people.tokens import HALF, PREFIX, Token
from sublet.store.tx import Tx

HALF_LASTS = timedelta(minutes=5)
COMPLETE = frozenset({"link", "second"})  # ways to sign in that need no second factor


@dataclass
class SignInTokens:
    """Issues the token at the end of every way to sign in."""

    settings: Settings

    def issue(self, tx: Tx, name: str, now: datetime, host: str, note: str, use: str, way: str) -> tuple[Token, str]:
        """Issue a token, in this transaction; `way` is how the person proved who they are.

        If a second factor is on, it is a half token, which can only be exchanged for a whole one.
        """
        if way not in COMPLETE and tx.factors.on(name):
            return _store(tx, Token(str(uuid4()), name, note, now, now + HALF_LASTS, use=f"{HALF}{use}"))
        signing = self.settings.signing
        expires = now + (signing.stay if use == "browser" else signing.lasts)
        tx.people.set_seen(name, now)
        if not is_clock_doubted(tx, now):
            tx.tokens.forget(name, now)
        token, secret = _store(tx, Token(str(uuid4()), name, note, now, expires, use=use))
        tx.audit.add(
            AuditEntry(now, name, "sign-in", "person", name, {"way": way, "use": use, "token": token.id}, host)
        )
        return token, secret


def _store(tx: Tx, token: Token) -> tuple[Token, str]:
    secret = PREFIX + secrets.token_urlsafe(32)
    tx.tokens.add(token, secret)
    return token, secret
