"""Calls of Globus' HTTP APIs (Transfer and Auth), and how their answers are read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.retries import TRY_AGAIN
from sublet.kernel.tls import trust_machine
from sublet.movers.bounded import BoundedClient, OverlongAnswer
from sublet.movers.http import WAITS
from sublet.movers.port import Interrupted
from sublet.movers.web_errors import describe_web_error

TRIES = 3
PAUSE = 0.5  # seconds before the first retry, doubled each time
VERSION = "/v0.10"
TRANSFER_SCOPE = "urn:globus:auth:scope:transfer.api.globus.org:all"
CONSENT = "ConsentRequired"
OF_A_COLLECTION = ("ExternalError", "EndpointError")  # errors of a collection: an immediate retry won't help
KEEP_TOKEN = "sublet credential add globus:// --sign-in, or --token"  # noqa: S105 - a command
NOBODY = f"Globus is asked as someone, and no token is kept here; keep one: {KEEP_TOKEN}"
LONGEST_ANSWER = 300  # characters of Globus' messages that are repeated


class GlobusFailed(Exception):
    """Globus did not do what it was asked for: the words say why."""

    def __init__(self, why: str, code: str = "", scopes: Sequence[str] = ()) -> None:
        """Say why, with Globus' error code and the scopes that it wants consent for."""
        super().__init__(why)
        self.code, self.scopes = code, scopes


@dataclass
class GlobusClient:
    """Calls Globus as a person, or as a client of its own."""

    transfer: str  # https://transfer.api.globus.org
    auth: str  # https://auth.globus.org
    credential: Credential | None
    pause: float = PAUSE
    _tokens: dict[str, str] = field(default_factory=dict, repr=False)  # by scope

    async def get(self, resource: str, **params: str) -> dict[str, Any]:
        """Get a resource of the Transfer API."""
        return await self._ask("GET", resource, params, None)

    async def post(self, resource: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post to the Transfer API; repeated posts with the same submission_id take effect once."""
        return await self._ask("POST", resource, {}, body)

    async def _ask(
        self, method: str, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Call the Transfer API.

        If consents are missing and the client can get them itself, retry with such a token.
        """
        scope = TRANSFER_SCOPE
        try:
            return await self._ask_with(scope, method, path, params, body)
        except GlobusFailed as failed:
            if failed.code != CONSENT or not failed.scopes or not self._is_client:
                raise
            scope = " ".join(failed.scopes)
        return await self._ask_with(scope, method, path, params, body)

    async def _ask_with(
        self, scope: str, method: str, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {await self.find_token(scope)}", "Accept": "application/json"}
        address = f"{self.transfer.rstrip('/')}{VERSION}{path}"
        return await self.send(httpx2.Request(method, address, params=params, headers=headers, json=body))

    @property
    def _is_client(self) -> bool:
        return self.credential is not None and self.credential.kind is CredentialKind.LOGIN

    async def find_token(self, scope: str) -> str:
        """Return a token for a scope: the stored one, or one obtained with a refresh token or a client's secret."""
        known = self.credential
        if known is None:
            raise GlobusFailed(NOBODY)
        if known.kind is CredentialKind.TOKEN and not known.user:
            return known.secret
        if scope not in self._tokens:
            self._tokens[scope] = await self._get_token(known, scope)
        return self._tokens[scope]

    async def _get_token(self, known: Credential, scope: str) -> str:
        form = {"grant_type": "client_credentials", "scope": scope}
        login = {"auth": httpx2.BasicAuth(known.user, known.secret)}
        if known.kind is CredentialKind.TOKEN:
            form = {"grant_type": "refresh_token", "refresh_token": known.secret, "client_id": known.user}
            login = {}
        headers = {"Accept": "application/json"}
        request = httpx2.Request("POST", f"{self.auth.rstrip('/')}/v2/oauth2/token", data=form, headers=headers)
        for auth in login.values():
            request = next(auth.auth_flow(request))
        return read_token(await self.send(request), scope)

    async def send(self, request: httpx2.Request) -> dict[str, Any]:
        """Send a request with retries and return Globus' answer; raise Interrupted if Globus can't be reached."""
        async with BoundedClient(verify=trust_machine(), timeout=WAITS) as client:  # redirects aren't followed
            for number in range(1, TRIES + 1):
                try:
                    response = await client.send(request)
                except (httpx2.UnsupportedProtocol, OverlongAnswer) as error:
                    raise GlobusFailed(str(error)) from error
                except httpx2.TransportError as error:
                    why = f"Globus can't be asked: {describe_web_error(error)}"
                else:
                    answer = read_answer(response)
                    if response.is_success:
                        return answer
                    failed = explain_refusal(response.status_code, answer)
                    if response.status_code not in TRY_AGAIN or any(word in failed.code for word in OF_A_COLLECTION):
                        raise failed
                    why = str(failed)
                if number < TRIES:
                    await asyncio.sleep(self.pause * 2 ** (number - 1))
        raise Interrupted(why)


def read_answer(response: httpx2.Response) -> dict[str, Any]:
    """Parse the JSON object of an answer."""
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    if response.is_success:
        raise GlobusFailed("the answer of Globus can't be read: it is no JSON object")
    return {"code": "", "message": response.reason_phrase}


def explain_refusal(status: int, answer: Mapping[str, Any]) -> GlobusFailed:
    """Return the error for a refusal, with what to do about it."""
    code = str(answer.get("code") or answer.get("error") or "")
    scopes = [str(scope) for scope in answer.get("required_scopes") or ()]
    if code == CONSENT:
        wanted = " ".join(scopes) or "of this collection"
        why = f"Globus wants your consent for {wanted}; sign in for that scope, and keep the new token: {KEEP_TOKEN}"
        return GlobusFailed(why, code, scopes)
    message = shorten_message(str(answer.get("message") or answer.get("error_description") or ""))
    if code in ("invalid_client", "unauthorized_client"):
        why = f"Globus does not know this client, or its secret is another ({message or code})"
        return GlobusFailed(f"{why}; keep the right one: sublet credential add globus:// --user CLIENT-ID", code)
    if status == httpx2.codes.UNAUTHORIZED or code == "invalid_grant":
        why = f"Globus does not take the token that is kept here ({message or code or status})"
        return GlobusFailed(f"{why}: it has expired, or was taken back; keep a new one: {KEEP_TOKEN}", code)
    return GlobusFailed(f"Globus answered {status} {code}{f': {message}' if message else ''}", code)


def shorten_message(message: str) -> str:
    """Shorten Globus' message to one line: what happened, and what the collection's server said."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    first = lines[0].partition(", Error (")[0] if lines else ""
    inner = next((line.removeprefix("Message:").strip() for line in lines if line.startswith("Message:")), "")
    return (f"{first}: {inner}" if inner else first)[:LONGEST_ANSWER].rstrip(".")


def read_token(answer: Mapping[str, Any], scope: str) -> str:
    """Return the token for a scope; Globus Auth's answer may hold tokens for several services."""
    grants = [answer, *(grant for grant in answer.get("other_tokens") or () if isinstance(grant, dict))]
    names = {part.partition("[")[0] for part in scope.split()}
    for grant in grants:
        if names & set(str(grant.get("scope", "")).split()) and grant.get("access_token"):
            return str(grant["access_token"])
    raise GlobusFailed(f"Globus gave no token for {scope}; keep one that was made for it: {KEEP_TOKEN}")
