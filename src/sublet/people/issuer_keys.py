"""A token issuer's metadata and keys, fetched and cached to verify its tokens."""

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

# Only asymmetric signatures: `none` and shared secrets don't prove who signed.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
PATIENCE = 10.0  # seconds for each answer
MOST_BYTES = 1024 * 1024
KEPT = timedelta(hours=1)  # how long metadata and keys are cached
AGAIN = timedelta(seconds=30)  # the least time between two fetches of keys
LONGEST = timedelta(days=1)  # how long the last keys are used while the issuer can't be reached
NEAR = ("127.0.0.1", "::1", "localhost")


@dataclass
class IssuerKeys:
    """One issuer, with its cached metadata and keys."""

    title: str  # its name for people
    issuer: str
    now: Callable[[], datetime]
    jwks: str = ""  # where its keys are; empty: as its metadata says
    _metadata: Mapping[str, Any] = field(default_factory=dict)
    _keys: KeySet | None = None
    _asked: datetime | None = None
    _asked_keys: datetime | None = None
    _tried: datetime | None = None
    _failure: ProviderUnreachable | NotConfirmed | None = None
    _fetching: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def verify(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token that one of the issuer's keys signed, refetching the keys if needed, or None."""
        for anew in (False, True):
            try:
                return dict(jwt.decode(token, await self.key_set(anew=anew), algorithms=ALGORITHMS).claims)
            except (JoseError, ValueError, TypeError, KeyError, RecursionError):
                continue
        return None

    async def discover(self) -> Mapping[str, Any]:
        """Return the issuer's metadata, cached for an hour."""
        now = self.now()
        if self._asked is None or abs(now - self._asked) >= KEPT:
            metadata = await self.ask("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != self.issuer:
                raise self.refuse(f"it calls itself {str(metadata.get('issuer'))[:200]}, not {self.issuer}")
            self._metadata, self._asked = metadata, now
        return self._metadata

    async def key_set(self, *, anew: bool = False) -> KeySet:
        """Return the issuer's keys; `anew` refetches them, but not too often."""
        async with self._fetching:  # of many waiting requests, only one fetches
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
        """Fetch the keys; if that fails, the old keys stay valid for a day."""
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
        """Return one of the issuer's addresses; it must be https, unless both it and the issuer are on this machine."""
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
        """Return the issuer's answer, a JSON object.

        A refused form raises NotConfirmed, no answer ProviderUnreachable.
        """
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
        """Return the error that the issuer didn't confirm someone."""
        return NotConfirmed(provider=self.title, why=f"{why}.")

    def _unreachable(self, why: str) -> ProviderUnreachable:
        return ProviderUnreachable(provider=self.title, why=f"{why}.")
