"""Calls to a token issuer, such as an IAM, from a terminal: sends a form and returns the JSON object in the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from sublet.kernel.errors import NotConfirmed, ProviderUnreachable

PATIENCE = 20.0  # seconds for each answer
MOST_BYTES = 1024 * 1024
NEAR = ("127.0.0.1", "::1", "localhost")
LATER = "Try again in a while; if it stays so, ask the operator of the service that you sign in to."


class NoRedirects(HTTPRedirectHandler):
    """A handler that follows no redirects, so that secrets are sent to the intended address only."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None, so that the redirect isn't followed."""


def call_issuer(title: str, address: str, form: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    """Return the issuer's status and JSON object; raise ProviderUnreachable if there is no valid answer."""
    headers = {"Accept": "application/json", "User-Agent": "sublet"}
    content = urlencode(form).encode() if form is not None else None
    opener = build_opener(ProxyHandler({}), NoRedirects)
    try:
        request = Request(address, content, headers)  # noqa: S310 (`check_address` lets https through, or loopback)
        with opener.open(request, timeout=PATIENCE) as reply:
            status, body = reply.status, reply.read(MOST_BYTES)
    except HTTPError as error:
        with error:
            status, body = error.code, error.read(MOST_BYTES)
    except (URLError, OSError, ValueError) as error:
        raise unreachable(title, str(getattr(error, "reason", "") or error)) from error
    try:
        answer = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise unreachable(title, f"it answered with {status}, and no JSON object")
    return status, answer


def discover(title: str, issuer: str) -> dict[str, Any]:
    """Fetch an issuer's OpenID Connect configuration, and check that it names this issuer."""
    check_address(title, issuer, issuer, "issuer")
    status, metadata = call_issuer(title, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if status != 200:
        raise unreachable(title, f"its OpenID configuration can't be read ({status})")
    if metadata.get("issuer") != issuer:
        calls_itself = printable(metadata.get("issuer"))
        raise NotConfirmed(provider=title, why=f"it calls itself {calls_itself}, not {issuer}.", hint=LATER)
    return metadata


def check_address(title: str, issuer: str, address: object, name: str) -> str:
    """Return an issuer's address if it is https, or http while both it and the issuer are on this machine."""
    text = address if isinstance(address, str) else ""
    try:
        parts, own = urlsplit(text), urlsplit(issuer)
    except ValueError:
        parts = own = urlsplit("")
    is_near = parts.hostname in NEAR and own.hostname in NEAR
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_near)):
        raise unreachable(title, f"it names no good address ({name})")
    return text


def unreachable(title: str, why: str) -> ProviderUnreachable:
    """Return the error for an issuer that can't be reached or gives an unusable answer."""
    return ProviderUnreachable(provider=title, why=f"{why.rstrip('.')}.", hint=LATER)


def printable(text: object, most: int = 200) -> str:
    """Return an issuer's text for display, without control characters and cut to `most` characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text)[:most])
