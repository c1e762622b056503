"""Sign-in to a gateway by a code sent by mail, for a token or a browser session."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

from sublet.access.model.access import matches_person
from sublet.booking.presenter import Presenter
from sublet.booking.recorded_clock import is_clock_doubted
from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import MailNotSent, SubletError, TooMany, WrongCode
from sublet.kernel.log import log
from sublet.kernel.mail import Mail
from sublet.kernel.rate_limits import RateLimit
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle, neighbours
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.people.same_mailbox import is_blocked
from sublet.people.sign_in_tokens import SignInTokens
from sublet.people.standings import Standings
from sublet.people.store.codes import Code
from sublet.people.tokens import PREFIX, SHOWN, Token, Tokens
from sublet.store.store import Store
from sublet.store.tx import Tx

DIGITS = 8  # five attempts guess a code once in twenty million
LASTS = timedelta(minutes=10)
TRIES = 5
KNOWN = "known browser"  # in place of a host: a browser that has signed in by this address before
LONGEST_NOTE = 100
CODES_ASKED = "Too many codes were asked for: wait {wait}."
NEWEST_COUNTS = "The newest code that was mailed still counts, for ten minutes after it was asked for."
SUBJECT = "Your code to sign in"
TEXT = """Your code to sign in to {url} is

    {code}

It counts once, for ten minutes, and only the newest one does. Type it where you asked for it, and nowhere else:
nobody of this service will ever ask you for it.

If you did not ask for it, there is nothing to do: without the code nobody can sign in as you.
"""


@dataclass
class SigningIn:
    """Sends sign-in codes, checks them, and issues tokens."""

    settings: Settings
    store: Store
    now: Clock
    presenter: Presenter
    standings: Standings
    throttle: Throttle
    mail: Mail
    authority: Authority
    secrets: SessionSecrets
    tokens: Tokens
    sign_in_tokens: SignInTokens
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    _mails: set[asyncio.Task[None]] = field(default_factory=set)  # being sent

    @property
    def sends_codes(self) -> bool:
        """Whether people can sign in by a mailed code."""
        return self.knows_people and self.mail.possible

    async def ask_code(self, address: str, host: str = "", *, known: bool = False) -> None:
        """Mail a code to an address if its owner may sign in, without revealing whether they may.

        Everything done, stored and answered is the same for every address; the mail itself is sent afterwards. `known`:
        the requester has proved that they signed in by this address before.
        """
        self.authority.require_gateway()
        address = self.authority.check_address(address)
        if not self.mail.possible:
            raise MailNotSent(address=address, why="no mail server is set.")
        self.throttle.spend("sign_ins_per_host", neighbours(host), NEWEST_COUNTS)
        code = f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
        made = self._make_code(address, KNOWN if known else neighbours(host), code)
        refused, wait = await self.store.write(lambda tx: self._check_asking(tx, made, host))
        if wait:
            raise TooMany(CODES_ASKED, hint=NEWEST_COUNTS, seconds=wait)
        if not refused:
            sending = asyncio.create_task(self._send_code(address, code), name="code by mail")
            self._mails.add(sending)
            sending.add_done_callback(self._mails.discard)

    async def sign_in_by_code(
        self, address: str, code: str, host: str = "", *, note: str = "", use: str = "api"
    ) -> tuple[Token, str]:
        """Exchange a code for a token and its secret; WrongCode is the same whatever was wrong."""
        self.authority.require_gateway()
        address = self.authority.check_address(address)
        self.throttle.spend("codes_per_host", neighbours(host))
        typed = "".join(letter for letter in code if letter not in " -\t")
        name = " ".join(note.split())[:LONGEST_NOTE]
        done = await self.store.write(lambda tx: self._try_code(tx, address, typed, host, name, use))
        if done is None:
            raise WrongCode
        return done

    async def visiting(self, person: Person, note: str = "", host: str = "") -> Token:
        """Open a browser session for someone who is authenticated in another way.

        It is listed, and can be revoked, as a token.
        """
        now = self.now()
        expires = now + self.settings.signing.stay
        token = Token(str(uuid4()), person.name, note, now, expires, person.operator, use="browser")

        def work(tx: Tx) -> None:
            detail = {"way": "link", "use": "browser", "token": token.id}
            if not is_clock_doubted(tx, now):
                tx.tokens.forget(person.name, now)
            tx.tokens.add(token, PREFIX + secrets.token_urlsafe(32))
            tx.audit.add(AuditEntry(now, person.name, "sign-in", "person", person.name, detail, host))

        await self.store.write(work)
        return token

    async def visit(self, id: str) -> Person | None:
        """Return the person of a browser session if it is valid, noting its use to the minute.

        Raise Blocked if they are.
        """
        now = self.now()
        token = await self.store.read(lambda tx: tx.tokens.get(id))
        if token is None or (token.expires and token.expires <= now):
            return None
        person = await self.tokens.holder(token)
        if person and (token.used is None or now - token.used >= SHOWN):
            await self.store.write(lambda tx: tx.tokens.use(id, now))
        return person

    async def end_visit(self, person: Person, id: str, host: str = "") -> None:
        """Revoke one of a person's own tokens."""
        now = self.now()

        def work(tx: Tx) -> None:
            if tx.tokens.revoke(id, person.name):
                tx.audit.add(AuditEntry(now, person.name, "sign-out", "token", id, {}, host))

        await self.store.write(work)
        self.standings.bump()

    async def give_up_all(self) -> None:
        """Cancel the mails that are being sent, as the service stops."""
        for sending in self._mails:
            sending.cancel()
        await asyncio.gather(*self._mails, return_exceptions=True)

    def may_sign_in(self, tx: Tx, address: str, known: Known | None) -> str:
        """Return why someone may not sign in; empty if they may."""
        if known and is_blocked(tx, known):
            return "blocked"
        signing = self.settings.signing
        patterns = [fold_address(allowed.lower(), signing.subaddresses) for allowed in signing.allow]
        if not patterns or (known and known.by) or any(matches_person(pattern, address) for pattern in patterns):
            return ""
        return "not allowed"

    def _make_code(self, address: str, host: str, code: str) -> Code:
        id, now = str(uuid4()), self.now()
        return Code(id, address, host, self._hash(id, address, code), now, now + LASTS)

    def _check_asking(self, tx: Tx, code: Code, host: str) -> tuple[str, int]:
        """Return why the code isn't sent, and how many seconds to wait before asking again; ("", 0) if it is sent."""
        limits = self.settings.throttle
        own, strange = limits.sign_ins_per_person, limits.sign_ins_per_address
        since = code.created - max(own.per, strange.per)
        wait = _wait(tx.codes.since(code.address, since), code.host, code.created, own, strange)
        known = tx.people.find("email", code.address)
        refused = self.may_sign_in(tx, code.address, known)
        if not wait:
            tx.codes.add(code)
        tx.codes.forget(since)
        detail = {"refused": "too many codes" if wait else refused}
        tx.audit.add(AuditEntry(code.created, "", "sign-in.ask", "person", code.address, detail, host))
        return refused, wait

    def _try_code(self, tx: Tx, address: str, typed: str, host: str, note: str, use: str) -> tuple[Token, str] | None:
        """Check a code: the attempt is counted first, and a correct code is used up."""
        now = self.now()
        code = tx.codes.open(address, now)
        id = code.id if code else ""
        counted = tx.codes.count_try(id, TRIES)
        expected = code.hash if code and counted else ""
        right = hmac.compare_digest(self._hash(id, address, typed), expected) and tx.codes.close(address, now)
        known = tx.people.find("email", address)
        refused = self.may_sign_in(tx, address, known)
        if not right or refused:
            why = refused or ("wrong code" if counted else "too many tries" if code else "no code")
            tx.audit.add(AuditEntry(now, "", "sign-in.refused", "person", address, {"way": "code", "why": why}, host))
            return None
        if known is None:
            known = Known(address, Role.PERSON, now)
            tx.people.add(known)
            tx.audit.add(AuditEntry(now, address, "person.come", "person", address, {"way": "code"}, host))
        return self.sign_in_tokens.issue(tx, known.name, now, host, note, use, "code")

    async def _send_code(self, address: str, code: str) -> None:
        url = self.settings.url or self.presenter.base_url or "this service"
        try:
            await self.mail.send(address, SUBJECT, TEXT.format(url=url, code=f"{code[:4]} {code[4:]}"))
        except SubletError as error:
            log.warning("code.not-sent", address=address, why=error.message)
            entry = AuditEntry(self.now(), "", "sign-in.not-sent", "person", address, {"why": error.message})
            await self.store.write(lambda tx: tx.audit.add(entry))

    def _hash(self, id: str, address: str, code: str) -> str:
        """Hash a code with the service's key, so that it can't be guessed from the database alone."""
        key = self.secrets.of("code to sign in").encode()
        return hmac.new(key, f"{id} {address} {code}".encode(), hashlib.sha256).hexdigest()


def _wait(asked: Sequence[tuple[str, datetime]], asker: str, now: datetime, own: RateLimit, strange: RateLimit) -> int:
    """Return the seconds until another code may be sent, given those sent before; 0: at once."""
    times_of = (
        (own, [when for who, when in asked if who == asker]),
        (strange, [when for who, when in asked if KNOWN not in (who, asker)]),
    )
    return max(_wait_by(limit, times, now) for limit, times in times_of)


def _wait_by(limit: RateLimit, times: Sequence[datetime], now: datetime) -> int:
    recent = [when for when in times if when > now - limit.per]
    if len(recent) < limit.most:
        return 0
    return max(1, math.ceil((recent[-limit.most] + limit.per - now).total_seconds()))
