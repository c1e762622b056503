"""The second factor: TOTP codes of an authenticator app, asked for after every other way to sign in."""

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
STEP = 30  # seconds for which a code is valid
RECOVERIES = 8
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without letters that look alike
ISSUER = "Sublet"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an authenticator app needs: the secret, and the URI that contains it."""

    secret: str
    uri: str


@dataclass
class Factors:
    """Manages second factors: a sign-in is incomplete until a code is shown."""

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
        """Return a person's second factor if it is confirmed, or None."""
        self.authority.require_gateway()
        factor = await self.store.read(lambda tx: tx.factors.get(person.name))
        return factor if factor and factor.confirmed else None

    async def find_factor_obstacle(self, person: Person) -> SubletError | None:
        """Return why a second factor can't be set up here, or None if it can."""
        try:
            await asyncio.to_thread(self.vault.check, PURPOSE.format(person.name))
        except SubletError as error:
            return error
        return None

    async def begin_factor(self, person: Person) -> Enrolment:
        """Make a new secret for an authenticator app; it takes effect once a code is confirmed."""
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
        """Turn the second factor on, and return the single-use recovery codes, which are shown only once."""
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
        """Turn a person's own second factor off, with one of its codes."""
        self.authority.require_gateway()
        if not code:
            raise FactorNeeded
        await self._check_factor(person.name, code, host)
        await self._remove_factor(person, person.name, host)

    async def reset_factor(self, person: Person, name: str, *, host: str = "") -> None:
        """Remove the lost second factor of someone else, as an operator."""
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
        """Exchange a half token and a code of the second factor, or a recovery code, for a whole token."""
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
        """Seal the secrets of second factors again, with the newest master key."""
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
        """Use up a code, or raise WrongCode; attempts are counted in the database before the code is checked."""
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
    """Return the time step of a code: the current one or a neighbour; None if the code is wrong."""
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
