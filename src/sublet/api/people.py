"""Who is asking: on the Unix socket its owner, on TCP whoever holds the token. Cookies count for nothing here."""

from __future__ import annotations

import base64
import binascii

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import Scope

from sublet.errors import NotSignedIn
from sublet.service.desk import Person
from sublet.service.service import Service

ON_SOCKET = "sublet.on_socket"  # set in the scope by the server, for connections by the Unix socket


def service_of(request: Request) -> Service:
    """The service that this application serves."""
    service: Service = request.app.state.service
    return service


def secret_of(headers: Headers) -> str:
    """The token in `Authorization`: a bearer's, or the password of a Basic login."""
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
    """Whether the connection came by the Unix socket, which only its owner can open."""
    return scope.get(ON_SOCKET) is True


async def person_of(request: Request) -> Person:
    """The person, or NotSignedIn."""
    if on_socket(request.scope):
        owner: Person = request.app.state.owner
        return owner
    secret = secret_of(request.headers)
    person = await service_of(request).bearer(secret) if secret else None
    if person is None:
        raise NotSignedIn
    return person


def base_of(request: Request) -> str:
    """The service's address as the asker can use it: as configured, else as it was called."""
    service = service_of(request)
    host = request.headers.get("host", "")
    if service.settings.url or not host or on_socket(request.scope):
        return (service.settings.url or service.base_url).rstrip("/")
    return f"{request.scope['scheme']}://{host}"
