"""Calls to a cloud's services with a Keystone token, and what their failures mean, in the services' own words."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.platforms.openstack.access import CloudAccess

Object = dict[str, Any]
PATIENCE = httpx2.Timeout(60.0, connect=10.0)
SOON = timedelta(minutes=5)  # this long before a token expires, another is requested
VERSION = "2.60"  # of Nova's API, which every cloud since 2018 has
TYPES = {"image": ("image",), "compute": ("compute",), "network": ("network",)}
TAGS = re.compile(r"<(title|style)[^>]*>.*?</\1>|<[^>]+>", re.DOTALL | re.IGNORECASE)
KEPT_WORDS = 400
RENEW = "Renew the password or the application credential; waiting sessions then continue."


@dataclass(frozen=True)
class KeystoneToken:
    """A token from Keystone."""

    id: str = field(repr=False)
    expires: datetime
    project: str  # its name
    user: str
    endpoints: Mapping[str, str]  # the type of a service → its address


class CloudCalls:
    """A cloud's services, accessed as one of its users."""

    def __init__(self, platform: str, access: CloudAccess, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Set up without connecting; `transport` replaces the usual HTTP transport."""
        self.platform, self.access = platform, access
        carried = transport or httpx2.AsyncHTTPTransport(verify=access.tls, trust_env=False)
        self._http = httpx2.AsyncClient(transport=carried, timeout=PATIENCE, follow_redirects=False)
        self._token: KeystoneToken | None = None
        self._signing_in = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def sign_in(self) -> KeystoneToken:
        """Return a token that is valid for a while, and request one if necessary."""
        async with self._signing_in:
            if self._token is None or datetime.now(UTC) > self._token.expires - SOON:
                self._token = await self._ask_for_token()
            return self._token

    async def _ask_for_token(self) -> KeystoneToken:
        address = f"{self.access.auth_url}/auth/tokens"
        answer = await self._send("POST", address, {}, {"auth": self.access.identity})
        if answer.status_code in (400, 401, 403, 404):
            why = f"{self.platform} can't be entered: {read_words(answer.content) or answer.status_code}."
            raise LoginNeeded(why, platform=self.platform, hint=RENEW)
        if not answer.is_success:
            raise self.describe_refusal(answer)
        return read_token(answer.headers.get("X-Subject-Token", ""), answer.content, self.access, self.platform)

    async def call(
        self, service: str, method: str, path: str, body: object = None, *, allow: tuple[int, ...] = ()
    ) -> httpx2.Response:
        """Make one call; raise the service's own words for any status that is neither a success nor in `allow`."""
        for is_last in (False, True):
            token = await self.sign_in()
            if service not in token.endpoints:
                why = f"its catalogue has no {service} service for {token.user} in {self.access.region or 'any region'}"
                raise PlatformRefused(platform=self.platform, why=why)
            headers = {"X-Auth-Token": token.id, "Accept": "application/json"}
            if service == "compute":
                headers["OpenStack-API-Version"] = f"compute {VERSION}"
            answer = await self._send(method, token.endpoints[service] + path, headers, body)
            if answer.status_code != 401 or is_last:
                break
            self._token = None  # it was revoked, or Keystone has new keys
        if answer.is_success or answer.status_code in allow:
            return answer
        raise self.describe_refusal(answer)

    async def get(self, service: str, path: str) -> Object:
        """Get the object at a path."""
        return read_object((await self.call(service, "GET", path)).content, self.platform)

    async def _send(self, method: str, address: str, headers: dict[str, str], body: object) -> httpx2.Response:
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers = {**headers, "Content-Type": "application/json"}
        try:
            return await self._http.request(method, address, headers=headers, content=content)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise PlatformUnreachable(platform=self.platform, why=f"{address.partition('?')[0]}: {why}") from error

    def describe_refusal(self, answer: httpx2.Response) -> LoginNeeded | PlatformRefused | PlatformUnreachable:
        """Return the error that an unsuccessful answer stands for."""
        status = answer.status_code
        words = read_words(answer.content) or f"it answered {status} and gave no reason"
        if status == 401:
            return LoginNeeded(f"{self.platform} refuses the token: {words}.", platform=self.platform, hint=RENEW)
        if status == 429 or status >= 500 or 300 <= status < 400:
            return PlatformUnreachable(platform=self.platform, why=f"{status}: {words}")
        return PlatformRefused(platform=self.platform, why=words)


def read_token(id: str, content: bytes, access: CloudAccess, platform: str) -> KeystoneToken:
    """Read Keystone's answer with a token."""
    token = read_object(content, platform).get("token") or {}
    project = token.get("project")
    if not id or not project:
        why = f"{platform} can't be entered: what was signed in with is for no project."
        raise LoginNeeded(why, platform=platform, hint=RENEW)
    endpoints = {kind: found for kind in TYPES if (found := _find_endpoint(token.get("catalog") or (), kind, access))}
    expires = datetime.fromisoformat(str(token["expires_at"]).replace("Z", "+00:00"))
    return KeystoneToken(id, expires, str(project["name"]), str((token.get("user") or {}).get("name") or ""), endpoints)


def _find_endpoint(catalog: Sequence[Object], kind: str, access: CloudAccess) -> str:
    for service in catalog:
        if service.get("type") not in TYPES[kind]:
            continue
        for endpoint in service.get("endpoints") or ():
            is_here = not access.region or access.region in (endpoint.get("region"), endpoint.get("region_id"))
            if is_here and endpoint.get("interface") == access.interface:
                return str(endpoint["url"]).rstrip("/")
    return ""


def read_object(content: bytes, platform: str) -> Object:
    """Read an object from an answer."""
    try:
        value = json.loads(content)
    except ValueError as error:
        raise PlatformUnreachable(platform=platform, why="what answered is no OpenStack") from error
    if not isinstance(value, dict):
        raise PlatformUnreachable(platform=platform, why="what answered is no OpenStack")
    return value


def read_words(content: bytes) -> str:
    """Return a refusal's message for people; each service wraps it differently."""
    try:
        value: Any = json.loads(content)
    except ValueError:
        text = TAGS.sub(" ", content.decode("utf-8", "replace"))
        return " ".join(text.split())[:KEPT_WORDS].rstrip(".")
    while isinstance(value, Mapping):
        named = value.get("message") or value.get("detail") or value.get("title")
        value = named if named else next((inner for inner in value.values() if isinstance(inner, Mapping | list)), "")
        if isinstance(value, list):
            value = value[0] if value else ""
    return " ".join(str(value).split())[:KEPT_WORDS].rstrip(".")
