"""Sends files over HTTP: one PUT each, streamed, with retries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import httpx2

from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.retries import TRY_AGAIN, TransferRetries
from sublet.kernel.streams import closing
from sublet.movers.arrival import unsent
from sublet.movers.login_auth import LoginAuth, needs_digest
from sublet.movers.port import Content, Progress
from sublet.movers.redirects import RedirectRefused, find_next, is_same_host
from sublet.movers.web_errors import describe_web_error, is_distrust

REDIRECTS = 5
LONGEST_ANSWER = 300  # characters of a server's answer that are repeated


class BearerAuth(httpx2.Auth):
    """Authenticates with a bearer token."""

    def __init__(self, token: str) -> None:
        """Use this token."""
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the token."""
        request.headers["authorization"] = f"Bearer {self._token}"
        yield request


def sign_in(credential: Credential | None) -> httpx2.Auth | None:
    """Return how to present a credential to a web server; None for S3 and SSH keys."""
    if credential is None or credential.kind in (CredentialKind.S3, CredentialKind.KEY):
        return None
    if credential.kind is CredentialKind.TOKEN:
        return BearerAuth(credential.secret)
    return LoginAuth(credential.user, credential.secret)


def authorization(credential: Credential | None) -> str:
    """Return the Authorization header for a credential; empty if there is none to send."""
    if (auth := sign_in(credential)) is None:
        return ""
    request = next(auth.auth_flow(httpx2.Request("GET", "https://localhost")))
    return f"Authorization: {request.headers['authorization']}"


async def put(
    client: httpx2.AsyncClient,
    content: Content,
    address: str,
    location: str,
    progress: Progress,
) -> httpx2.Response:
    """Upload a file with PUT; raise DataNotSent with the server's answer on failure."""
    retries, wanted = TransferRetries(), 0.0
    while True:
        knew_digest = needs_digest(client.auth)
        try:
            response = await _put_once(client, content, address, progress)
        except (_Changed, RedirectRefused, httpx2.UnsupportedProtocol) as error:  # a retry wouldn't help
            raise unsent(content.path, location, str(error)) from error
        except httpx2.RequestError as error:
            why = describe_web_error(error)
            if is_distrust(error):
                break
        else:
            if response.is_success:
                return response
            if needs_digest(client.auth) and not knew_digest:
                continue
            why = describe_refusal(response)
            if response.status_code not in TRY_AGAIN:
                break
            after = response.headers.get("Retry-After", "")
            wanted = float(after) if after.isdecimal() else 0.0
        if (pause := retries.note_failure(has_progress=False, wanted=wanted)) is None:
            break
        await asyncio.sleep(pause)
    raise unsent(content.path, location, why)


async def _put_once(client: httpx2.AsyncClient, content: Content, address: str, progress: Progress) -> httpx2.Response:
    """Upload a file to an address, or to where its server leads; another host is shown no credential."""
    first = at = httpx2.URL(address)
    for _ in range(REDIRECTS + 1):
        body = _Body(content, progress).read()
        headers = {"content-length": str(content.size)}
        auth = httpx2.USE_CLIENT_DEFAULT if is_same_host(first, at) else httpx2.Auth()  # which shows nothing
        response = await client.put(at, content=body, headers=headers, auth=auth, follow_redirects=False)
        if (leads_to := find_next(response)) is None:
            return response
        at = leads_to
    raise RedirectRefused("its address leads on and on")


class _Changed(Exception):
    """What is sent is not what it was when its size was told."""


class _Body:
    """A request body that is read while it is sent, and never exceeds the announced size."""

    def __init__(self, content: Content, progress: Progress) -> None:
        self._content, self._progress, self.sent = content, progress, 0

    async def read(self) -> AsyncIterator[bytes]:
        size = self._content.size
        async with closing(self._content.read(0)) as pieces:
            async for piece in pieces:
                self.sent += len(piece)
                if self.sent > size:
                    break
                yield piece
                self._progress(self.sent, size)
        if self.sent != size:
            raise _Changed(f"it changed as it was read: it had {size} bytes, and {self.sent} came")


def describe_refusal(response: httpx2.Response) -> str:
    """Return the server's answer on one line; an HTML page is reduced to its status."""
    is_page = "html" in response.headers.get("content-type", "html")
    text = "" if is_page else " ".join(re.sub(r"<[^>]*>", " ", response.text).split())[:LONGEST_ANSWER]
    answer = f"the server answered {response.status_code} {response.reason_phrase}".strip()
    return f"{answer}: {text}" if text else answer


async def count_out(content: Content, progress: Progress) -> AsyncIterator[bytes]:
    """Read a file from its beginning, and report the progress of sending it."""
    sent = 0
    async with closing(content.read(0)) as pieces:
        async for piece in pieces:
            sent += len(piece)
            yield piece
            progress(sent, content.size)


async def spool(content: Content, file: Path) -> None:
    """Write content to a local file, for programs that can only send files."""
    await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
    with file.open("wb") as writer:
        async with closing(content.read(0)) as pieces:
            async for piece in pieces:
                await asyncio.to_thread(writer.write, piece)
        if writer.tell() != content.size:
            raise unsent(content.path, "", f"it changed as it was read: {writer.tell()} of {content.size} bytes came")
