"""One POST to an address that a person chose: to public hosts only unless allowed, no redirects, with a time limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2

from sublet.kernel.public_addresses import PublicOnly
from sublet.kernel.streams import read_up_to
from sublet.kernel.tls import trust_machine

KEPT = 200  # characters kept of an answer
GONE = 410  # the status by which a receiver unsubscribes


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of a call."""

    well: bool
    words: str
    gone: bool = False  # the receiver wants no more calls


def wrong_with(address: str, *, private: bool) -> str:
    """Return why an address can't be called, judged by its form alone, or an empty string if it can."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"it is not an address ({error})"
    if parts.scheme not in ("https", "http") or not host:
        return "it is not an http address"
    if parts.scheme == "http" and not private:
        return "it has to be https"
    if parts.username or parts.password:
        return "an address can't have a password in it"
    if parts.fragment:
        return "an address that is called has no # in it"
    return ""


async def call(address: str, headers: dict[str, str], body: bytes, *, private: bool, patience: timedelta) -> Answered:
    """Send a POST and return its outcome; errors become an outcome that describes them."""
    kind = httpx2.AsyncHTTPTransport if private else PublicOnly
    transport = kind(verify=trust_machine(environment=False), trust_env=False)
    seconds = patience.total_seconds()
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False, timeout=seconds) as client,
            client.stream("POST", address, headers=headers, content=body) as answer,
        ):
            return await _read(answer)
    except TimeoutError:
        return Answered(False, f"it did not answer within {seconds:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
        return Answered(False, (str(error) or type(error).__name__)[:KEPT])


async def _read(answer: httpx2.Response) -> Answered:
    """Return the outcome that a response stands for, with its status and the beginning of its body."""
    words = f"{answer.status_code} {answer.reason_phrase}".strip()
    if answer.is_success:
        return Answered(True, words)
    if answer.is_redirect:
        return Answered(False, f"{words}: it leads elsewhere, and that is not followed")
    body = await read_up_to(KEPT, answer.aiter_raw())
    text = " ".join(body.decode("utf-8", "replace").split())
    return Answered(False, f"{words}: {text}"[:KEPT] if text else words, answer.status_code == GONE)
