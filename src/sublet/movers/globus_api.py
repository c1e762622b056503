"""What is asked of Globus over HTTP, its Transfer service and its sign-in, and how the answers are read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.retries import TRY_AGAIN
from sublet.kernel.tls import trust_machine
from sublet.movers.http import WAITS, words
from sublet.movers.port import Interrupted

TRIES = 3
PAUSE = 0.5  # seconds before the second try; twice as long before each further one
VERSION = "/v0.10"
TRANSFER_SCOPE = "urn:globus:auth:scope:transfer.api.globus.org:all"
CONSENT = "ConsentRequired"
OF_A_COLLECTION = ("ExternalError", "EndpointError")  # a collection is in trouble: asking again at once won't help
KEEP_TOKEN = "sublet credential add globus:// --sign-in, or --token"  # noqa: S105 - a command
NOBODY = f"Globus is asked as someone, and no token is kept here; keep one: {KEEP_TOKEN}"
LONGEST_ANSWER = 300  # characters of what Globus says that are repeated


class GlobusFailed(Exception):
    """Globus did not do what it was asked for: the words say why."""

    def __init__(self, why: str, code: str = "", scopes: Sequence[str] = ()) -> None:
        """Say why, with Globus' own name for it and the scopes that it wants a consent for."""
        super().__init__(why)
        self.code, self.scopes = code, scopes


@dataclass
class GlobusClient:
    """Asks Globus as one person, or as a client of its own."""

    transfer: str  # https://transfer.api.globus.org
    auth: str  # https://auth.globus.org
    credential: Credential | None
    pause: float = PAUSE
    _tokens: dict[str, str] = field(default_factory=dict, repr=False)  # by scope

    async def get(self, resource: str, **params: str) -> dict[str, Any]:
        """What Transfer has of a resource."""
        return await self._ask("GET", resource, params, None)

    async def post(self, resource: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Tell Transfer to do something; what is said twice with the same submission_id is done once."""
        return await self._ask("POST", resource, {}, body)

    async def _ask(
        self, method: str, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Once more with a token that has the consents which are missing, where this client can get one by itself."""
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
        """A token for a scope: the one that is kept, or what Globus gives for a refresh token or a client's secret."""
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
        """What Globus answered, asked again where that may help; Interrupted, if it can't be reached."""
        async with httpx2.AsyncClient(verify=trust_machine(), timeout=WAITS) as client:  # it follows no redirection
            for number in range(1, TRIES + 1):
                try:
                    response = await client.send(request)
                except httpx2.UnsupportedProtocol as error:
                    raise GlobusFailed(str(error)) from error
                except httpx2.TransportError as error:
                    why = f"Globus can't be asked: {words(error)}"
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
    """The object that Globus answered."""
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
    """Why Globus refused, and what to do about it."""
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
    """Globus' message on one line: what happened, and what the collection's own server said of it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    first = lines[0].partition(", Error (")[0] if lines else ""
    inner = next((line.removeprefix("Message:").strip() for line in lines if line.startswith("Message:")), "")
    return (f"{first}: {inner}" if inner else first)[:LONGEST_ANSWER].rstrip(".")


def read_token(answer: Mapping[str, Any], scope: str) -> str:
    """The token for a scope; Globus Auth tells those of several services at once."""
    grants = [answer, *(grant for grant in answer.get("other_tokens") or () if isinstance(grant, dict))]
    names = {part.partition("[")[0] for part in scope.split()}
    for grant in grants:
        if names & set(str(grant.get("scope", "")).split()) and grant.get("access_token"):
            return str(grant["access_token"])
    raise GlobusFailed(f"Globus gave no token for {scope}; keep one that was made for it: {KEEP_TOKEN}")
