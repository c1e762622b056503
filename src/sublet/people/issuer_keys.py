"""An issuer of tokens, as those see it who check them: what it says of itself, and its keys, kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx2
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable
from sublet.kernel.log import log
from sublet.kernel.streams import read_up_to
from sublet.kernel.tls import trust_machine

# Signatures by the issuer's own key only: `none`, and those by a shared secret, are no proof of who signed.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
PATIENCE = 10.0  # seconds for each answer
MOST_BYTES = 1024 * 1024
KEPT = timedelta(hours=1)  # how long what it says of itself counts
AGAIN = timedelta(seconds=30)  # how often its keys are asked for when one is not among them, or it can't be asked
LONGEST = timedelta(days=1)  # how long its last keys count while it can't be asked
NEAR = ("127.0.0.1", "::1", "localhost")


@dataclass
class IssuerKeys:
    """One issuer, with what it last said of itself."""

    title: str  # what people know it as
    issuer: str
    now: Callable[[], datetime]
    jwks: str = ""  # where its keys are; empty: where its configuration says
    _metadata: Mapping[str, Any] = field(default_factory=dict)
    _keys: KeySet | None = None
    _asked: datetime | None = None
    _asked_keys: datetime | None = None
    _tried: datetime | None = None
    _failure: ProviderUnreachable | NotConfirmed | None = None
    _fetching: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def verify(self, token: str) -> dict[str, Any] | None:
        """The claims of a token that one of its keys signed; None if none did, nor one that it has now."""
        for anew in (False, True):
            try:
                return dict(jwt.decode(token, await self.key_set(anew=anew), algorithms=ALGORITHMS).claims)
            except (JoseError, ValueError, TypeError, KeyError, RecursionError):
                continue
        return None

    async def discover(self) -> Mapping[str, Any]:
        """What it says of itself, which counts for an hour."""
        now = self.now()
        if self._asked is None or abs(now - self._asked) >= KEPT:
            metadata = await self.ask("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != self.issuer:
                raise self.refuse(f"it calls itself {str(metadata.get('issuer'))[:200]}, not {self.issuer}")
            self._metadata, self._asked = metadata, now
        return self._metadata

    async def key_set(self, *, anew: bool = False) -> KeySet:
        """Its keys; asked for anew when a signature is by none of them, but not too often."""
        async with self._fetching:  # of many who wait for its keys, one fetches them
            now = self.now()
            is_due = self._tried is None or abs(now - self._tried) >= AGAIN
            is_old = self._asked_keys is None or abs(now - self._asked_keys) >= KEPT
            if self._keys is None and not is_due and self._failure:
                raise self._failure
            if is_due and (anew or is_old):
                await self._fetch_keys(now)
            if self._keys is None:
                raise self._unreachable("its keys are not known")
            return self._keys

    async def _fetch_keys(self, now: datetime) -> None:
        """Ask for its keys; while it can't be asked, those that it had count on for a day."""
        self._tried = now
        try:
            keys = await self.ask("GET", self.jwks or self.endpoint(await self.discover(), "jwks_uri"))
            self._keys, self._asked_keys, self._failure = KeySet.import_key_set(keys), now, None  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError, TypeError) as error:
            self._failure = self._unreachable("its keys can't be read")
            self._failure.__cause__ = error
        except (ProviderUnreachable, NotConfirmed) as error:
            self._failure = error
        if self._failure and self._asked_keys and abs(now - self._asked_keys) >= LONGEST:
            self._keys = None
        if self._failure:
            log.warning("issuer.keys-not-fetched", issuer=self.issuer, why=self._failure.message)
        if self._failure and self._keys is None:
            raise self._failure

    def endpoint(self, metadata: Mapping[str, Any], name: str) -> str:
        """One of its addresses: by https, unless it is on this machine as its issuer is."""
        address = str(metadata.get(name) or "")
        parts = urlsplit(address)
        near = parts.hostname in NEAR and urlsplit(self.issuer).hostname in NEAR
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and near)):
            raise self._unreachable(f"it names no good {name}")
        return address

    async def ask(
        self,
        method: str,
        address: str,
        *,
        form: Mapping[str, str] | None = None,
        auth: httpx2.BasicAuth | None = None,
        bearer: str = "",
    ) -> dict[str, Any]:
        """Its answer, a JSON object; a form may be refused, which is not the same as no answer."""
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {bearer}"} if bearer else {})
        trusted = trust_machine(environment=False)
        try:
            async with (
                httpx2.AsyncClient(verify=trusted, timeout=PATIENCE, trust_env=False, auth=auth) as client,
                client.stream(method, address, data=form, headers=headers) as answer,
            ):
                content = await read_up_to(MOST_BYTES, answer.aiter_bytes())
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
            raise self.refuse(f"it refused the code ({str(body.get('error', ''))[:60]})")
        if response.status_code != httpx2.codes.OK or not isinstance(body, dict):
            raise self._unreachable(f"it answered with {response.status_code}")
        return body

    def refuse(self, why: str) -> NotConfirmed:
        """It did not confirm someone."""
        return NotConfirmed(provider=self.title, why=f"{why}.")

    def _unreachable(self, why: str) -> ProviderUnreachable:
        return ProviderUnreachable(provider=self.title, why=f"{why}.")
