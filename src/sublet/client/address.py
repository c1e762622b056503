"""Where a service is: the personal one on its Unix socket, or one at a URL."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from sublet.client.gateways import current, login_to
from sublet.kernel.errors import BadRequest
from sublet.kernel.home import Home, sublet_home

OWN = "own"  # in place of a URL: one's own service
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """How a service is reached, and as whom."""

    socket: str = ""  # the path of a Unix socket; else host and port
    scheme: str = "http"
    host: str = "localhost"
    port: int = 80
    prefix: str = ""  # below which the service lives: "/sublet"
    token: str = ""
    home: Home | None = None  # set when the service is one's own and starts by itself
    token_ends: float = 0.0  # seconds since 1970, of a token that an issuer renews; 0: nobody does

    @property
    def text(self) -> str:
        """As a person would write it."""
        return self.socket or f"{self.scheme}://{self.host}:{self.port}{self.prefix}"

    @property
    def local(self) -> bool:
        """Whether the service sees the same files as the caller."""
        return bool(self.socket)


def find_address(
    url: str | None = None, token: str | None = None, socket: str | os.PathLike[str] | None = None
) -> Address:
    """What was given, else what SUBLET_URL and SUBLET_TOKEN say, else the gateway that the person is signed in to.

    Without any of these, or with the address `own`, it is the person's own service.
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
    """The service at a URL, as nobody in particular."""
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
