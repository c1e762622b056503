"""An OpenID Connect provider: where to sign in, and the verified claims of who did."""

from __future__ import annotations

import hashlib
import stat
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx2

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable
from sublet.kernel.settings_tables import OidcSettings
from sublet.people.issuer_keys import IssuerKeys
from sublet.people.model.claims import Confirmed as Confirmed  # also imported from here by code that confirms people

SKEW = timedelta(minutes=1)  # tolerated clock skew


@dataclass
class Provider:
    """One provider, with its cached metadata and keys."""

    name: str
    settings: OidcSettings
    now: Callable[[], datetime]
    keys: IssuerKeys = field(init=False)

    def __post_init__(self) -> None:
        """Make the cache for the provider's metadata and keys."""
        self.keys = IssuerKeys(self.title, self.settings.issuer, self.now)

    async def address(self, redirect: str, state: str, nonce: str, verifier: str) -> str:
        """Return the address to send a browser to for signing in."""
        endpoint = self.keys.endpoint(await self.keys.discover(), "authorization_endpoint")
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
        """Return who came back with this code; raise NotConfirmed if anything is wrong."""
        metadata = await self.keys.discover()
        grant = await self._redeem(metadata, code, redirect, verifier)
        token, access = grant.get("id_token"), grant.get("access_token")
        if not isinstance(token, str):
            raise self._refuse("it sent no ID token")
        claims = await self.check(token, nonce)
        subject = str(claims["sub"])
        if self.settings.address not in claims and isinstance(access, str) and metadata.get("userinfo_endpoint"):
            more = await self.keys.ask("GET", self.keys.endpoint(metadata, "userinfo_endpoint"), bearer=access)
            if more.get("sub") != subject:
                raise self._refuse("it told of someone else")
            claims = {**more, **claims}
        verified = claims.get("email_verified") is True
        address = claims.get(self.settings.address) if verified else ""
        text = address if isinstance(address, str) else ""
        return Confirmed(self.settings.issuer, subject, text, claims=claims)

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
        return await self.keys.ask("POST", self.keys.endpoint(metadata, "token_endpoint"), form=form, auth=auth)

    async def check(self, token: str, nonce: str) -> dict[str, Any]:
        """Return an ID token's claims.

        Raise NotConfirmed unless it is the provider's, for this client and sign-in, and valid.
        """
        claims = await self.keys.verify(token)
        if claims is None:
            raise self._refuse("its ID token is not signed by its keys")
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
        return claims

    def _secret(self) -> str | None:
        """Return the client secret, if only its owner can read its file."""
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
        """The provider's name for people."""
        return self.settings.title or self.name

    def _refuse(self, why: str) -> NotConfirmed:
        return NotConfirmed(provider=self.title, why=f"{why}.")

    def _unreachable(self, why: str) -> ProviderUnreachable:
        return ProviderUnreachable(provider=self.title, why=f"{why}.")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
