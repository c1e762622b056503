"""WebSockets to sessions at other brokers: the connection goes to that broker, which may pass it on to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from websockets.asyncio.client import connect

from sublet.kernel.errors import SessionElsewhere
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.kernel.tls import trust_machine

SCHEMES = {"http": "ws", "https": "wss"}
PORTS = {"http": 80, "https": 443}


class StraightOn(connect):
    """A WebSocket connection that follows no redirects."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Return the error, so that no redirect is followed."""
        return exc


@dataclass(frozen=True, slots=True)
class WayThere:
    """How to open a WebSocket to a session."""

    upstream: str  # the scheme and host of the session's server
    open: Callable[..., Any]
    is_elsewhere: bool = False  # at another broker, which must not see our secrets


async def lead_on(elsewhere: SessionElsewhere, rest: str) -> WayThere:
    """Return how to reach another broker's session; `rest` is the path below the session's address, with its query.

    That broker chose the address: below the broker's own it is trusted, any other must be public and use TLS.
    """
    place = urlsplit(str(elsewhere.values["location"]))
    if place.scheme not in SCHEMES or not place.hostname:
        raise elsewhere
    more: dict[str, Any] = {"ssl": trust_machine()} if place.scheme == "https" else {}
    if not elsewhere.values.get("is_own"):
        if place.scheme != "https":
            raise elsewhere
        port = place.port or PORTS[place.scheme]
        try:
            more |= {"host": (await public_addresses(place.hostname, port))[0], "port": port}
        except NotPublic:
            raise elsewhere from None
    path, _, query = rest.partition("?")
    own = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "token"]
    asked = urlencode([*own, *parse_qsl(place.query, keep_blank_values=True)])
    uri = f"{SCHEMES[place.scheme]}://{place.netloc}{place.path.rstrip('/')}/{path}?{asked}"
    return WayThere(f"{place.scheme}://{place.netloc}", partial(StraightOn, uri=uri, **more), is_elsewhere=True)
