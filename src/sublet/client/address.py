"""The address of a service: the personal one's Unix socket, or a URL."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from sublet.client.gateways import current, login_to
from sublet.kernel.errors import BadRequest
from sublet.kernel.home import Home, sublet_home

OWN = "own"  # in place of a URL: the person's own service
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """How to reach a service, and with which token."""

    socket: str = ""  # the path of a Unix socket; empty: host and port
    scheme: str = "http"
    host: str = "localhost"
    port: int = 80
    prefix: str = ""  # the path prefix of the service, such as "/sublet"
    token: str = ""
    home: Home | None = None  # set for the person's own service, which is started on demand
    token_ends: float = 0.0  # when the token expires, in seconds since 1970; 0: it can't be renewed

    @property
    def text(self) -> str:
        """The address as a person would write it."""
        return self.socket or f"{self.scheme}://{self.host}:{self.port}{self.prefix}"

    @property
    def local(self) -> bool:
        """Whether the service sees the same files as the caller."""
        return bool(self.socket)


def find_address(
    url: str | None = None, token: str | None = None, socket: str | os.PathLike[str] | None = None
) -> Address:
    """Return the given address, or else SUBLET_URL's, or else that of the gateway that the person signed in to.

    Without any of these, or with the URL `own`, it is the person's own service.
    """
    if socket is not None:
        return Address(socket=os.fspath(socket))
    home = sublet_home()
    url = url or os.environ.get("SUBLET_URL") or current(home) or OWN
    token = token or os.environ.get("SUBLET_TOKEN") or ""
    if url == OWN:
        return Address(socket=home.socket, home=home)
    if url.startswith("unix:"):
        return Address(socket=url.removeprefix("unix:").replace("//", "", 1))
    address = gateway_at(url)
    login = None if token else login_to(home, address.text)
    if login is None:
        return replace(address, token=token)
    return replace(address, token=login.access, token_ends=login.expires)


def gateway_at(url: str) -> Address:
    """Parse a service's URL to an address without a token; raise BadRequest if it is malformed."""
    from urllib.parse import urlsplit  # slow to load, and the personal service never needs it

    wrong = BadRequest(f"{url} is not the address of a service.", hint="Write https://HOST or http://HOST:PORT.")
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError as error:
        raise wrong from error
    if not parts.hostname or not port or parts.scheme not in PORTS:
        raise wrong
    return Address(scheme=parts.scheme, host=parts.hostname, port=port, prefix=parts.path.rstrip("/"))
