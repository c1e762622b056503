"""Sign-in by an OpenID Connect provider."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import NotConfirmed, NotFound, WrongCode
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle, neighbours
from sublet.people.arrivals import Arrivals, note_confirmed_address
from sublet.people.model.claims import Confirmed
from sublet.people.model.people import Identity
from sublet.people.same_mailbox import is_blocked
from sublet.people.sign_in_tokens import SignInTokens
from sublet.people.tokens import ONCE, PREFIX, Token
from sublet.store.store import Store
from sublet.store.tx import Tx

if TYPE_CHECKING:
    from sublet.people.openid import Provider

LASTS = timedelta(minutes=10)  # time to sign in at the provider
ONCE_LASTS = timedelta(minutes=5)
MOST = 4096


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in that was begun; kept only by the browser that began it."""

    provider: str
    state: str
    nonce: str
    verifier: str
    next: str = ""  # the page to go to afterwards
    challenge: str = ""  # the hash of a secret that a waiting terminal keeps
    link: str = ""  # the person who adds this identity to their own; empty: someone signs in


@dataclass
class Oidc:
    """Signs people in by OpenID Connect providers, or links their identities."""

    settings: Settings
    store: Store
    now: Clock
    throttle: Throttle
    authority: Authority
    secrets: SessionSecrets
    arrivals: Arrivals
    sign_in_tokens: SignInTokens
    knows_people: bool  # whether people sign in here; otherwise there are only the owner and token holders

    _oidc_providers: dict[str, Provider] = field(default_factory=dict)

    @property
    def providers(self) -> Mapping[str, str]:
        """The configured providers: name → label of the button."""
        if not self.knows_people:
            return {}
        return {name: provider.title or name for name, provider in self.settings.oidc.items()}

    async def begin_oidc(
        self, name: str, back: str, *, next: str = "", challenge: str = "", link: str = ""
    ) -> tuple[str, str]:
        """Return the address to send a browser to, and the signed state that it keeps meanwhile."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        made = PendingSignIn(name, state, nonce, verifier, next, challenge, link)
        address = await self._oidc_provider(name).address(back, made.state, made.nonce, made.verifier)
        return address, self._oidc_sealed(made)

    async def end_oidc(
        self, kept: str, name: str, back: str, answer: Mapping[str, str], host: str = "", note: str = ""
    ) -> tuple[PendingSignIn, Token | None, str]:
        """Sign in whoever comes back from a provider, if this browser began it.

        Return the pending sign-in, token and secret.
        """
        provider = self._oidc_provider(name)
        self.throttle.spend("codes_per_host", neighbours(host))
        begun = self._oidc_unsealed(kept)
        try:
            if begun is None or begun.provider != name:
                raise NotConfirmed(provider=provider.title, why="this browser did not begin it, or too long ago.")
            if not hmac.compare_digest(begun.state.encode(), answer.get("state", "").encode()):
                raise NotConfirmed(provider=provider.title, why="the answer is to another sign-in.")
            if answer.get("iss", provider.settings.issuer) != provider.settings.issuer:
                raise NotConfirmed(provider=provider.title, why="the answer is from another issuer.")
            if not answer.get("code"):
                raise NotConfirmed(provider=provider.title, why=f"it said {answer.get('error', 'nothing')[:60]}.")
            came = await provider.confirm(answer["code"], back, begun.nonce, begun.verifier)
        except NotConfirmed as error:
            await self._oidc_refused(name, "", error.message, host)
            raise
        if begun.link:
            await self._oidc_linked(begun.link, name, came, host)
            return begun, None, ""
        use = ONCE if begun.challenge else "browser"
        done = await self.store.write(lambda tx: self._oidc_came(tx, name, came, host, begun.challenge or note, use))
        if isinstance(done, str):
            await self._oidc_refused(name, came.address or came.identity, done, host)
            raise NotConfirmed(provider=provider.title, why=f"you may not sign in here ({done}).", hint=ASK)
        return begun, *done

    async def sign_in_once(self, code: str, verifier: str, host: str = "", note: str = "") -> tuple[Token, str]:
        """Exchange a code that the page showed after a sign-in for a token, for the terminal that began it."""
        self.authority.require_gateway()
        self.throttle.spend("codes_per_host", neighbours(host))
        now = self.now()
        challenge = hashlib.sha256(verifier.encode()).hexdigest()

        def work(tx: Tx) -> tuple[Token, str] | None:
            token = tx.tokens.check(code.strip(), now)
            if token is None or token.use != ONCE or not tx.tokens.revoke(token.id):
                return None
            known = tx.people.get(token.person)
            if not hmac.compare_digest(token.name, challenge) or known is None or is_blocked(tx, known):
                return None
            return self.sign_in_tokens.issue(tx, token.person, now, host, note[:100], "api", "oidc")

        done = await self.store.write(work)  # a wrong verifier uses up the code too
        if done is None:
            raise WrongCode(hint="Type `sublet login` again.")
        return done

    def _oidc_came(self, tx: Tx, name: str, came: Confirmed, host: str, note: str, use: str) -> tuple[Token, str] | str:
        """Sign a person in, in this transaction, or return why they may not."""
        now = self.now()
        address = self._oidc_address(name, came)
        issuer, came = self.arrivals.read_claims(came)
        known = self.arrivals.welcome(tx, name, came, address, now, host)
        if isinstance(known, str):
            return known
        if came.groups is not None:
            groups = [f"{issuer}:{group}" for group in came.groups]
            tx.groups.confirm(known.name, issuer, groups, now + self.settings.signing.stay)
        if use == ONCE:
            token, secret = Token(str(uuid4()), known.name, note, now, now + ONCE_LASTS, use=ONCE), _code()
            tx.tokens.add(token, secret)
            return token, secret
        return self.sign_in_tokens.issue(tx, known.name, now, host, note, use, f"oidc {name}")

    async def _oidc_linked(self, person: str, name: str, came: Confirmed, host: str) -> None:
        """Add an identity to a person who is signed in."""
        now, address = self.now(), self._oidc_address(name, came)

        def work(tx: Tx) -> bool:
            owner = tx.people.find("oidc", came.identity)
            if owner is None and tx.people.get(person):
                tx.people.add_identity(Identity("oidc", came.identity, person, now))
                detail = {"kind": "oidc", "value": came.identity, "way": "own act"}
                tx.audit.add(AuditEntry(now, person, "identity.add", "person", person, detail, host))
            elif owner is None or owner.name != person:
                return False
            note_confirmed_address(tx, person, address, name, now, host)
            return True

        if not await self.store.write(work):
            title = self._oidc_provider(name).title
            raise NotConfirmed(provider=title, why="this identity is someone else's here.", hint=ASK)

    def _oidc_address(self, name: str, came: Confirmed) -> str:
        """Return the verified address, if this provider may vouch for it; otherwise an empty string."""
        return self.arrivals.find_address(came, self.settings.oidc[name].addresses)

    async def _oidc_refused(self, name: str, who: str, why: str, host: str) -> None:
        log.warning("sign-in.refused", way=f"oidc {name}", why=why)
        detail = {"way": f"oidc {name}", "why": why}
        entry = AuditEntry(self.now(), "", "sign-in.refused", "person", who, detail, host)
        await self.store.write(lambda tx: tx.audit.add(entry))

    def _oidc_provider(self, name: str) -> Provider:
        from sublet.people.openid import Provider  # heavy, and not needed by a gateway without providers

        if name not in self.providers:
            known = ", ".join(self.providers) or "none"
            raise NotFound(noun="way to sign in", name=name[:40], hint=f"There are: {known}.")
        if name not in self._oidc_providers:
            self._oidc_providers[name] = Provider(name, self.settings.oidc[name], self.now)
        return self._oidc_providers[name]

    def _oidc_sealed(self, begun: PendingSignIn) -> str:
        until = int((self.now() + LASTS).timestamp())
        body = urlsafe_b64encode(json.dumps([until, *astuple(begun)]).encode()).decode()
        return f"{body}.{self._oidc_signed(body)}"

    def _oidc_unsealed(self, kept: str) -> PendingSignIn | None:
        body, _, signature = kept[:MOST].partition(".")
        if not hmac.compare_digest(self._oidc_signed(body).encode(), signature.encode()):
            return None
        until, *values = json.loads(urlsafe_b64decode(body))
        return PendingSignIn(*values) if self.now().timestamp() < until else None

    def _oidc_signed(self, body: str) -> str:
        return hmac.new(self.secrets.of("oidc sign-in").encode(), body.encode(), hashlib.sha256).hexdigest()


ASK = "Ask the operator of this gateway."


def _code() -> str:
    return PREFIX + secrets.token_urlsafe(18)
