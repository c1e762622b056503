"""Tokens of other issuers, such as an IAM: verified by the issuer's keys, and mapped to people here."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NotConfirmed, TokenRefused
from sublet.kernel.settings import Settings
from sublet.kernel.settings_trust import IssuerSettings
from sublet.people.arrivals import Arrivals
from sublet.people.blocking import explain_block
from sublet.people.model.assertion import Errand, find_misuse, read_assertion
from sublet.people.model.claims import ClaimRules, Confirmed, expiry_of, find_fault, read_groups, read_scopes
from sublet.people.model.people import Known
from sublet.people.model.person import Person
from sublet.people.standing import Standing
from sublet.store.store import Store
from sublet.store.tx import Tx

if TYPE_CHECKING:
    from sublet.people.issuer_keys import IssuerKeys

LONGEST = 16_384  # characters of a token
LONGEST_SUBJECT = 255
BETWEEN = timedelta(minutes=10)  # how much longer than its token a broker's groups count
PARTS = 3  # parts of a JWT


@dataclass
class TrustedIssuers:
    """Authenticates people by an issuer's token, as the same person whichever way they sign in."""

    settings: Settings
    store: Store
    now: Clock
    authority: Authority
    arrivals: Arrivals
    standing: Standing
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    _keys: dict[str, IssuerKeys] = field(default_factory=dict)

    def is_token(self, secret: str) -> bool:
        """Whether this looks like an issuer's token, and such tokens are accepted here."""
        return self.knows_people and bool(self.settings.issuers) and secret.count(".") == PARTS - 1

    def list_for_terminals(self) -> list[tuple[str, IssuerSettings, str]]:
        """List the issuers from which `sublet login` can get tokens: name, settings, and the token's audience."""
        known = self.settings.issuers.items() if self.knows_people else ()
        return [
            (name, issuer, next(iter(issuer.audiences), self.settings.url))
            for name, issuer in known
            if issuer.client_id and not issuer.is_broker
        ]

    def is_errand(self, secret: str) -> bool:
        """Whether this is a broker's token for one request, whose bearer must not be cached."""
        return self.is_token(secret) and self.settings.issuers[self._find_issuer(secret)].is_broker

    async def bearer(self, token: str, errand: Errand, host: str = "") -> Person:
        """Return whose token this is.

        Raise TokenRefused with the reason if it isn't valid, Blocked if its person is blocked.
        """
        name = self._find_issuer(token)
        settings = self.settings.issuers[name]
        claims = await self._check(name, token)
        scope = read_scopes(claims, settings.scopes)
        if scope is None:
            raise TokenRefused(why=f"none of its scopes counts here; those that do are {', '.join(settings.scopes)}")
        if settings.is_broker:
            await self._use_once(name, claims, errand)
        known = await self._recognise(name, claims, host)
        person = await self.standing.as_now(Person(known.name, scope=scope, until=expiry_of(claims) + settings.skew))
        if person is None:
            raise await self.store.read(lambda tx: explain_block(tx, known.name))
        return person

    def _find_issuer(self, token: str) -> str:
        """Return the name of the issuer that a token claims to be from, before it is verified."""
        try:
            payload = token.split(".")[1] if len(token) <= LONGEST else ""
            claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            issuer = claims.get("iss")
        except (ValueError, AttributeError, RecursionError) as error:
            raise TokenRefused(why="it can't be read") from error
        named = [name for name, settings in self.settings.issuers.items() if settings.issuer == issuer]
        if not named:
            raise TokenRefused(why="its issuer is not one that is trusted here")
        return named[0]

    async def _check(self, name: str, token: str) -> dict[str, Any]:
        """Return a token's claims.

        Raise TokenRefused unless its issuer signed it, for this service, and it is valid now.
        """
        settings = self.settings.issuers[name]
        try:
            claims = await self._issuer_keys(name, settings).verify(token)
        except NotConfirmed as error:
            raise TokenRefused(why=error.message) from error
        if claims is None:
            raise TokenRefused(why="none of its issuer's keys signed it")
        audiences = settings.audiences or (self.settings.url, f"{self.settings.url.rstrip('/')}/")
        rules = ClaimRules(settings.issuer, frozenset(audiences) - {"", "/"}, settings.skew)
        subject = claims.get(settings.subject)
        why = find_fault(claims, rules, self.now())
        if not why and (not isinstance(subject, str) or not subject or len(subject) > LONGEST_SUBJECT):
            why = f"its `{settings.subject}` names nobody"
        if why:
            raise TokenRefused(why=why)
        return claims

    def _issuer_keys(self, name: str, settings: IssuerSettings) -> IssuerKeys:
        from sublet.people.issuer_keys import IssuerKeys  # heavy, and not needed by a gateway without issuers

        keys = self._keys.get(name)
        if keys is None or (keys.issuer, keys.jwks) != (settings.issuer, settings.jwks):
            keys = self._keys[name] = IssuerKeys(name, settings.issuer, self.now, settings.jwks)
        return keys

    async def _use_once(self, name: str, claims: Mapping[str, Any], errand: Errand) -> None:
        """Raise TokenRefused if a broker's token is used for another request, or twice for a change."""
        prefix = urlsplit(self.settings.url).path.rstrip("/")  # a reverse proxy may strip it
        if why := find_misuse(claims, errand) and find_misuse(claims, replace(errand, path=f"{prefix}{errand.path}")):
            raise TokenRefused(why=why)
        if errand.is_look:
            return
        id, now = f"{name} {claims['jti']}", self.now()
        until = expiry_of(claims) + self.settings.issuers[name].skew * 2
        if not await self.store.write(lambda tx: tx.assertions.use(id, until, now)):
            raise TokenRefused(why="it was used before, and counts once")

    async def _recognise(self, name: str, claims: Mapping[str, Any], host: str) -> Known:
        """Return the person of a token, with their groups up to date; nothing is written if nothing is new."""
        by, came = self._read_person(name, claims)
        settings, expiry, now = self.settings.issuers[by], expiry_of(claims), self.now()
        until = expiry + BETWEEN if by != name else expiry
        address = self.arrivals.find_address(came, settings.addresses)
        names = None if came.groups is None else frozenset(f"{by}:{group}" for group in came.groups)

        def look(tx: Tx) -> Known | None:
            known = self.arrivals.find(tx, came, address)
            is_linked = known and all(tx.people.find("oidc", identity) for identity in came.identities)
            if known is None or not is_linked or self.arrivals.signing_in.may_sign_in(tx, address or known.name, known):
                return None
            if names is not None:
                before, last = tx.groups.list_confirmed(known.name, by)
                if before != names or last is None or last < expiry:
                    return None
            return known

        def work(tx: Tx) -> Known | str:
            known = self.arrivals.welcome(tx, by, came, address, now, host)
            if not isinstance(known, str) and names is not None:
                before, last = tx.groups.list_confirmed(known.name, by)
                tx.groups.confirm(
                    known.name, by, sorted(names), max(until, last) if last and before == names else until
                )
            return known

        known: Known | str | None = await self.store.read(look)
        known = known or await self.store.write(work)
        if isinstance(known, Known):
            return known
        if known == "blocked":
            person = await self.store.read(lambda tx: self.arrivals.find(tx, came, address))
            raise await self.store.read(lambda tx: explain_block(tx, person.name if person else ""))
        raise TokenRefused(why="its person may not sign in here")

    def _read_person(self, name: str, claims: Mapping[str, Any]) -> tuple[str, Confirmed]:
        """Read who someone is from a token's claims: as its issuer says, or as a broker quotes another issuer."""
        settings = self.settings.issuers[name]
        if settings.is_broker:
            others = {other: self.settings.issuers[other] for other in settings.speaks_for}
            by = {other.issuer: (short, other.realm) for short, other in others.items()}
            if named := read_assertion(claims, by):
                return named
        verified = claims.get("email_verified") is True
        address = claims.get(settings.address) if verified else ""
        groups = read_groups(claims, settings.groups, settings.claims)
        subject = str(claims[settings.subject])
        text = address if isinstance(address, str) else ""
        return name, Confirmed(settings.issuer, subject, text, settings.realm, groups)
