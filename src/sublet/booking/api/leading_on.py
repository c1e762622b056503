"""A WebSocket to a session of another broker: it is led on to that broker, which may lead it on to the next."""

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
    """Opens a WebSocket where it was said, and follows no redirection."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Whatever the answer says, nobody goes elsewhere."""
        return exc


@dataclass(frozen=True, slots=True)
class WayThere:
    """How a WebSocket is opened to where a session listens."""

    upstream: str  # the scheme and host there
    open: Callable[..., Any]
    is_elsewhere: bool = False  # at another broker, which need not know our secrets


async def lead_on(elsewhere: SessionElsewhere, rest: str) -> WayThere:
    """The way to another broker's session; `rest` is what follows the session's own address, with its query.

    The address is that broker's word: below the broker's own it is followed, else only to a public one over TLS.
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
