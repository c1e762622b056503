"""Authentication of the API: on the Unix socket its owner, on TCP the holder of a token. Cookies are ignored here."""

from __future__ import annotations

import base64
import binascii
from time import monotonic

from fastapi import Request
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from sublet.api.queries import check_query
from sublet.api.scopes import check_scope
from sublet.kernel.errors import NotSignedIn, NotYours, OperatorsOnly, SubletError, TokenRefused
from sublet.kernel.throttle import neighbours
from sublet.people.model.assertion import Errand
from sublet.people.model.person import Person
from sublet.service import Service

MOMENT = 2.0  # seconds for which a token that another process revoked still works here
MOST_REMEMBERED = 1000
NEEDS_FACTOR = (
    "Your role, {role}, counts once you have a second factor: `sublet person totp on`, or on the page of your account."
)
NOT_KNOWN = "This token is unknown, was revoked, or has expired."
VALID_COUNTS = "A valid token still works; only wrong ones are limited."
ON_SOCKET = "sublet.on_socket"  # set in the scope by the server, for connections on the Unix socket


def service_of(request: Request) -> Service:
    """Return the service of this application."""
    service: Service = request.app.state.service
    return service


def secret_of(headers: Headers) -> str:
    """Return the token in `Authorization`: a bearer token, or the password of Basic authentication."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def on_socket(scope: Scope) -> bool:
    """Whether the connection is on the Unix socket, which only its owner can open."""
    return scope.get(ON_SOCKET) is True


async def person_of(request: Request) -> Person:
    """Return the person who makes the request; raise NotSignedIn, or OutOfScope if the token doesn't allow it.

    Raise BadRequest if the query has an unknown parameter.
    """
    if on_socket(request.scope):
        owner: Person = request.app.state.owner
        check_query(request)
        return owner
    return await person_by(request, secret_of(request.headers))


async def person_by(request: Request, secret: str) -> Person:
    """Return the person who holds this token, if it allows the request."""
    remembered: Remembered = request.app.state.remembered
    service = service_of(request)
    person = remembered.get(secret, service.standings.version)
    if person is None and secret:
        standings = service.standings.version
        if service.people.issuers.is_token(secret):
            person = await _by_issuer(request, secret)
        else:
            person = await service.people.tokens.bearer(secret)
        if person is None or not service.people.issuers.is_errand(secret):
            remembered.put(secret, person, standings)
    request.state.person = person
    if person is None:
        if secret:  # only wrong tokens count, so that a valid one is never locked out by a neighbour's
            service.throttle.spend("wrong_tokens_per_host", neighbours(host_of(request)), VALID_COUNTS)
        hint = f"sublet login {base_of(request)}" if service.people.signing_in.knows_people else ""
        raise NotSignedIn(NOT_KNOWN if secret else "", hint=hint)
    check_scope(request, person)
    check_query(request)
    return person


async def _by_issuer(request: Request, token: str) -> Person:
    """Return the person that another issuer's token names; refused tokens count as wrong ones."""
    service, query = service_of(request), request.scope.get("query_string", b"")
    path = request.scope.get("raw_path") or request.url.path.encode()
    errand = Errand(request.method, (path + b"?" + query if query else path).decode("ascii", "replace"))
    try:
        return await service.people.issuers.bearer(token, errand, host_of(request))
    except TokenRefused:
        service.throttle.spend("wrong_tokens_per_host", neighbours(host_of(request)), VALID_COUNTS)
        raise


def host_of(request: HTTPConnection) -> str:
    """Return the address that the request came from; empty on the Unix socket."""
    return request.client.host if request.client and not on_socket(request.scope) else ""


class Remembered:
    """A short-lived cache of tokens' owners, so that many requests need one lookup."""

    def __init__(self) -> None:
        """Start empty."""
        self._people: dict[str, tuple[Person, int, float]] = {}

    def get(self, secret: str, standings: int) -> Person | None:
        """Return the person, if they were looked up just now and nobody's standing has changed since."""
        person, before, until = self._people.get(secret, (None, 0, 0.0))
        return person if before == standings and monotonic() < until else None

    def put(self, secret: str, person: Person | None, standings: int) -> None:
        """Cache a person who was looked up; unknown tokens aren't cached."""
        if len(self._people) >= MOST_REMEMBERED:
            self._people.clear()
        if person is not None:
            self._people[secret] = (person, standings, monotonic() + MOMENT)

    def clear(self) -> None:
        """Clear the cache, because a token was revoked."""
        self._people.clear()


async def require_operated(request: Request) -> Service:
    """Return the service; raise OperatorsOnly unless the caller is an operator."""
    if not (await person_of(request)).operator:
        raise OperatorsOnly
    return service_of(request)


def explain_refusal(request: HTTPConnection, error: SubletError) -> SubletError:
    """Return the error; for someone whose role needs a second factor that they don't have, with what to do."""
    person: Person | None = getattr(request.state, "person", None)
    if not isinstance(error, (OperatorsOnly, NotYours)) or person is None or not person.pending_role:
        return error
    return type(error)(error.message, hint=NEEDS_FACTOR.format(role=person.pending_role))


def base_of(request: Request) -> str:
    """Return the service's address that the caller can use: as configured, or else as the request was addressed."""
    service = service_of(request)
    host = request.headers.get("host", "")
    if service.settings.url or not host or on_socket(request.scope):
        return (service.settings.url or service.presenter.base_url).rstrip("/")
    return f"{request.scope['scheme']}://{host}"
