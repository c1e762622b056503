"""A second factor: the codes of an authenticator (TOTP), asked for after every other way to sign in."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import secrets
from dataclasses import dataclass
from datetime import datetime

from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import AlreadyThere, FactorNeeded, NotFound, SubletError, TooMany, WrongCode
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle, neighbours
from sublet.kernel.vault import Vault
from sublet.people.model.person import Person
from sublet.people.sign_in_tokens import SignInTokens
from sublet.people.standings import Standings
from sublet.people.store.factors import Factor
from sublet.people.tokens import HALF, Token
from sublet.store.store import Store
from sublet.store.tx import Tx

PURPOSE = "totp:{}"
STEP = 30  # seconds for which one code is shown
RECOVERIES = 8
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without letters that look like others
ISSUER = "Sublet"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an authenticator is told: the secret itself, and the address that has it."""

    secret: str
    uri: str


@dataclass
class Factors:
    """Whoever has a second factor is let in half, until they show a code of it."""

    settings: Settings
    store: Store
    now: Clock
    standings: Standings
    vault: Vault
    throttle: Throttle
    authority: Authority
    secrets: SessionSecrets
    sign_in_tokens: SignInTokens

    async def factor(self, person: Person) -> Factor | None:
        """Someone's own second factor, if it counts."""
        self.authority.require_gateway()
        factor = await self.store.read(lambda tx: tx.factors.get(person.name))
        return factor if factor and factor.confirmed else None

    async def find_factor_obstacle(self, person: Person) -> SubletError | None:
        """Why a second factor can't be set up here; None: it can."""
        try:
            await asyncio.to_thread(self.vault.check, PURPOSE.format(person.name))
        except SubletError as error:
            return error
        return None

    async def begin_factor(self, person: Person) -> Enrolment:
        """A new secret for an authenticator; it counts once a code of it is shown."""
        import pyotp

        self.authority.require_gateway()
        secret = pyotp.random_base32()
        sealed = await asyncio.to_thread(self.vault.seal, PURPOSE.format(person.name), secret)
        now = self.now()

        def work(tx: Tx) -> None:
            if tx.people.get(person.name) is None:
                raise NotFound(noun="person", name=person.name, hint="Only who signs in has a second factor.")
            if tx.factors.on(person.name):
                raise AlreadyThere(
                    noun="second factor of", name=person.name, hint="Turn it off first, with a code of it."
                )
            tx.factors.put(person.name, sealed, now)

        await self.store.write(work)
        where = self.settings.url.partition("://")[2].partition("/")[0]
        issuer = f"{ISSUER} {where}".strip()
        return Enrolment(secret, pyotp.TOTP(secret).provisioning_uri(person.name, issuer_name=issuer))

    async def confirm_factor(self, person: Person, code: str, host: str = "") -> tuple[str, ...]:
        """Let it count from now on; the codes by which one comes in without it, each once, are shown this once."""
        await self._check_factor(person.name, code, host, recoverable=False, confirmed=False)
        codes = tuple(_recovery() for _ in range(RECOVERIES))
        hashes = tuple(self._recovery_hash(person.name, code) for code in codes)
        now = self.now()

        def work(tx: Tx) -> None:
            tx.factors.confirm(person.name, hashes, now)
            tx.audit.add(AuditEntry(now, person.name, "factor.on", "person", person.name, {}, host))

        await self.store.write(work)
        self.standings.bump()
        return codes

    async def remove_factor(self, person: Person, code: str, *, host: str = "") -> None:
        """Come in without it from now on; a code of it is needed."""
        self.authority.require_gateway()
        if not code:
            raise FactorNeeded
        await self._check_factor(person.name, code, host)
        await self._remove_factor(person, person.name, host)

    async def reset_factor(self, person: Person, name: str, *, host: str = "") -> None:
        """Let someone in without the second factor that they have lost; not oneself."""
        self.authority.require_operator(person)
        if name == person.name:
            raise FactorNeeded(hint="Another operator can reset yours.")
        await self._remove_factor(person, name, host)

    async def _remove_factor(self, person: Person, whose: str, host: str) -> None:
        now = self.now()

        def work(tx: Tx) -> None:
            if not tx.factors.remove(whose):
                raise NotFound(noun="second factor of", name=whose, hint="`sublet person totp on` makes one.")
            tx.audit.add(AuditEntry(now, person.name, "factor.off", "person", whose, {}, host))

        await self.store.write(work)
        self.standings.bump()

    async def second(self, half: str, code: str, host: str = "") -> tuple[Token, str]:
        """A whole token for a half one and a code of the second factor, or one of the recovery codes."""
        self.authority.require_gateway()
        self.throttle.spend("codes_per_host", neighbours(host))
        now = self.now()
        token = await self.store.read(lambda tx: tx.tokens.check(half, now))
        if token is None or not token.use.startswith(HALF):
            raise WrongCode(hint="Begin to sign in again.")
        await self._check_factor(token.person, code, host)
        use = token.use.removeprefix(HALF)

        def work(tx: Tx) -> tuple[Token, str] | None:
            known = tx.people.get(token.person)
            if known is None or known.blocked is not None or not tx.tokens.revoke(token.id):
                return None
            return self.sign_in_tokens.issue(tx, token.person, now, host, token.name, use, "second")

        whole = await self.store.write(work)
        if whole is None:
            raise WrongCode(hint="Begin to sign in again.")
        return whole

    async def reseal(self) -> dict[str, int]:
        """The secrets of second factors."""
        old = await self.store.read(lambda tx: tx.factors.secrets())
        new = {
            name: await asyncio.to_thread(self.vault.reseal, PURPOSE.format(name), sealed)
            for name, sealed in old.items()
        }
        sealed = await self.store.write(lambda tx: sum(tx.factors.seal(name, old[name], new[name]) for name in new))
        return {"second factor": sealed}

    async def _check_factor(
        self, name: str, code: str, host: str, *, recoverable: bool = True, confirmed: bool = True
    ) -> None:
        """Use a code up, or WrongCode; tries are counted in the database before they are looked at."""
        typed = "".join(letter for letter in code.lower() if letter not in " -\t")
        factor = await self.store.read(lambda tx: tx.factors.get(name))
        if factor is None or (factor.confirmed is None) == confirmed:
            raise WrongCode(hint="There is no second factor: start again.")
        secret = await asyncio.to_thread(self.vault.open, PURPOSE.format(name), factor.secret)
        now, limit = self.now(), self.settings.throttle.second_factors_per_person

        def work(tx: Tx) -> bool | None:
            if not tx.factors.try_once(name, limit.most, limit.per, now):
                return None
            step = _step(secret, typed, now)
            right = step is not None and tx.factors.use(name, step)
            if not right and recoverable:
                current = tx.factors.get(name) or factor
                right = tx.factors.recover(current, self._recovery_hash(name, typed))
            if not right:
                detail = {"way": "second factor", "why": "wrong code"}
                tx.audit.add(AuditEntry(now, name, "sign-in.refused", "person", name, detail, host))
            return right

        right = await self.store.write(work)
        if right is None:
            raise TooMany(seconds=math.ceil(limit.per.total_seconds()))
        if not right:
            raise WrongCode(hint="Each code counts once: wait for the next one.")

    def _recovery_hash(self, name: str, code: str) -> str:
        key = self.secrets.of("recovery code").encode()
        return hmac.new(key, f"{name} {code}".encode(), hashlib.sha256).hexdigest()


def _step(secret: str, typed: str, now: datetime) -> int | None:
    """The step that a code is of: the present one, or one beside it."""
    import pyotp

    present = int(now.timestamp()) // STEP
    otp = pyotp.TOTP(secret, interval=STEP)
    shown = typed.encode(errors="replace")
    matches = [step for step in (present - 1, present, present + 1) if hmac.compare_digest(_code(otp, step), shown)]
    return matches[0] if matches else None


def _code(otp: object, step: int) -> bytes:
    return str(otp.generate_otp(step)).encode()  # type: ignore[attr-defined]


def _recovery() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(10))
