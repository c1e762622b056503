"""An OpenID provider, as a client sees it: where it is asked, and what it says of someone, checked."""

from __future__ import annotations

import hashlib
import stat
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable
from sublet.kernel.settings_tables import OidcSettings
from sublet.kernel.tls import trust_machine

# Signatures by the provider's own key only: `none`, and those by the client's secret, are no proof of who signed.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
PATIENCE = 10.0  # seconds for each answer
MOST_BYTES = 1024 * 1024
KEPT = timedelta(hours=1)  # how long what it says of itself counts
AGAIN = timedelta(minutes=1)  # how often its keys are asked for when one is not among them
SKEW = timedelta(minutes=1)  # how far its clock may be off
NEAR = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Who someone is, as a provider confirmed it."""

    issuer: str
    subject: str
    address: str  # empty: none that is verified

    @property
    def identity(self) -> str:
        """The value of the identity of kind `oidc`; an issuer's address has no space in it."""
        return f"{self.issuer} {self.subject}"


@dataclass
class Provider:
    """One provider, with what it last said of itself."""

    name: str
    settings: OidcSettings
    now: Callable[[], datetime]
    _metadata: Mapping[str, Any] = field(default_factory=dict)
    _keys: KeySet | None = None
    _asked: datetime | None = None
    _asked_keys: datetime | None = None

    async def address(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Where a browser is sent to sign in there."""
        endpoint = self._endpoint(await self._discover(), "authorization_endpoint")
        wish = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(wish)}"

    async def confirm(self, code: str, redirect: str, nonce: str, verifier: str) -> Confirmed:
        """Who came back with this code; NotConfirmed if anything about it is not as it should be."""
        metadata = await self._discover()
        grant = await self._redeem(metadata, code, redirect, verifier)
        token, access = grant.get("id_token"), grant.get("access_token")
        if not isinstance(token, str):
            raise self._refuse("it sent no ID token")
        claims = await self.check(token, nonce)
        subject = str(claims["sub"])
        if self.settings.address not in claims and isinstance(access, str) and metadata.get("userinfo_endpoint"):
            more = await self._ask("GET", self._endpoint(metadata, "userinfo_endpoint"), bearer=access)
            if more.get("sub") != subject:
                raise self._refuse("it told of someone else")
            claims = {**more, **claims}
        verified = claims.get("email_verified") is True
        address = claims.get(self.settings.address) if verified else ""
        return Confirmed(self.settings.issuer, subject, address if isinstance(address, str) else "")

    async def _redeem(self, metadata: Mapping[str, Any], code: str, redirect: str, verifier: str) -> dict[str, Any]:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
        secret = self._secret()
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        basic = secret is not None and "client_secret_basic" in methods
        if not basic:
            form["client_id"] = self.settings.client_id
        if secret is not None and not basic:
            form["client_secret"] = secret
        auth = httpx2.BasicAuth(self.settings.client_id, secret) if basic and secret is not None else None
        return await self._ask("POST", self._endpoint(metadata, "token_endpoint"), form=form, auth=auth)

    async def check(self, token: str, nonce: str) -> dict[str, Any]:
        """What an ID token says, if it is from there, for us, for this sign-in, and of now."""
        try:
            claims = jwt.decode(token, await self._key_set(), algorithms=ALGORITHMS).claims
        except (JoseError, ValueError):
            try:
                claims = jwt.decode(token, await self._key_set(anew=True), algorithms=ALGORITHMS).claims
            except (JoseError, ValueError) as error:
                raise self._refuse("its ID token is not signed by its keys") from error
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        now = self.now().timestamp()
        skew = SKEW.total_seconds()
        wrong = {
            "its ID token is from another issuer": claims.get("iss") != self.settings.issuer,
            "its ID token is for another client": self.settings.client_id not in audiences
            or (len(audiences) > 1 and claims.get("azp") != self.settings.client_id)
            or claims.get("azp", self.settings.client_id) != self.settings.client_id,
            "its ID token is for another sign-in": not nonce or claims.get("nonce") != nonce,
            "its ID token has expired": not _number(claims.get("exp")) or claims["exp"] + skew <= now,
            "its ID token is not of now": not _number(claims.get("iat")) or claims["iat"] - skew > now,
            "its ID token names nobody": not isinstance(claims.get("sub"), str) or not claims["sub"],
        }
        if why := next((why for why, so in wrong.items() if so), ""):
            raise self._refuse(why)
        return dict(claims)

    async def _discover(self) -> Mapping[str, Any]:
        now = self.now()
        if self._asked is None or abs(now - self._asked) >= KEPT:
            metadata = await self._ask("GET", f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != self.settings.issuer:
                raise self._refuse(f"it calls itself {str(metadata.get('issuer'))[:200]}, not {self.settings.issuer}")
            self._metadata, self._asked = metadata, now
        return self._metadata

    async def _key_set(self, *, anew: bool = False) -> KeySet:
        """Its keys; asked for anew when a signature is by none of them, but not too often."""
        now = self.now()
        stale = self._asked_keys is None or abs(now - self._asked_keys) >= (AGAIN if anew else KEPT)
        if self._keys is None or stale:
            keys = await self._ask("GET", self._endpoint(await self._discover(), "jwks_uri"))
            try:
                self._keys = KeySet.import_key_set(keys)  # type: ignore[arg-type]
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise self._unreachable("its keys can't be read") from error
            self._asked_keys = now
        return self._keys

    def _endpoint(self, metadata: Mapping[str, Any], name: str) -> str:
        """One of its addresses: by https, unless it is on this machine as its issuer is."""
        address = str(metadata.get(name) or "")
        parts = urlsplit(address)
        near = parts.hostname in NEAR and urlsplit(self.settings.issuer).hostname in NEAR
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and near)):
            raise self._unreachable(f"it names no good {name}")
        return address

    async def _ask(
        self,
        method: str,
        address: str,
        *,
        form: Mapping[str, str] | None = None,
        auth: httpx2.BasicAuth | None = None,
        bearer: str = "",
    ) -> dict[str, Any]:
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {bearer}"} if bearer else {})
        trusted = trust_machine(environment=False)
        try:
            async with (
                httpx2.AsyncClient(verify=trusted, timeout=PATIENCE, trust_env=False, auth=auth) as client,
                client.stream(method, address, data=form, headers=headers) as answer,
            ):
                content = b""
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > MOST_BYTES:
                        raise self._unreachable("its answer is too long")
                response = httpx2.Response(answer.status_code, content=content)
        except httpx2.HTTPError as error:
            raise self._unreachable(type(error).__name__) from error
        return self._read(response, refusable=form is not None)

    def _read(self, response: httpx2.Response, *, refusable: bool) -> dict[str, Any]:
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = None
        if refusable and response.status_code in (400, 401) and isinstance(body, dict):
            raise self._refuse(f"it refused the code ({str(body.get('error', ''))[:60]})")
        if response.status_code != httpx2.codes.OK or not isinstance(body, dict):
            raise self._unreachable(f"it answered with {response.status_code}")
        return body

    def _secret(self) -> str | None:
        """The client's secret, if its file is its owner's alone."""
        file = self.settings.client_secret_file
        if file is None:
            return None
        try:
            if stat.S_IMODE(file.stat().st_mode) & 0o077:
                raise self._unreachable(f"others can read {file}; `chmod 600` it")
            return file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreachable(f"the client's secret can't be read: {error}") from error

    @property
    def title(self) -> str:
        """What people know it as."""
        return self.settings.title or self.name

    def _refuse(self, why: str) -> NotConfirmed:
        return NotConfirmed(provider=self.title, why=f"{why}.")

    def _unreachable(self, why: str) -> ProviderUnreachable:
        return ProviderUnreachable(provider=self.title, why=f"{why}.")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
