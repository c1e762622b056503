"""Checks that secrets are sent securely: on the service's own machine, or by https."""

from __future__ import annotations

from starlette.requests import Request

from sublet.api.people import on_socket
from sublet.kernel.errors import NotPrivate

NEAR = ("127.0.0.1", "::1")


def check_private(request: Request) -> None:
    """Raise NotPrivate if a secret in this request would travel over a network unencrypted."""
    near = request.client is not None and request.client.host in NEAR
    if not (on_socket(request.scope) or near or request.url.scheme == "https"):
        raise NotPrivate
