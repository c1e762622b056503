"""HTTP requests on the system itself; it is sent there with `fetcher.py`, and needs nothing but Python."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import urllib.parse
import urllib.request
from typing import Any

CONNECT = 10.0  # seconds to connect to a source
SILENCE = 60.0  # seconds without a byte
REDIRECTS = 5
HOLDS_IPV4 = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::/96")))


class FetchFailed(Exception):
    """It can't be had; the kind says what may help."""

    def __init__(self, kind: str, why: str) -> None:
        """Set the kind of failure and the reason."""
        super().__init__(why)
        self.kind, self.why = kind, why


class BrokenOff(Exception):
    """It broke off, and may go on."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        """Set the reason, and how many seconds the server wants us to wait."""
        super().__init__(why)
        self.pause = pause


def is_public(text: str) -> bool:
    """Whether an IP address is public, and so is any IPv4 address embedded in it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    inner = None
    if address.version == 6:
        if any(address in network for network in HOLDS_IPV4):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        else:
            inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    return address.is_global and not address.is_multicast and (inner is None or is_public(str(inner)))


class WebSources:
    """Asks servers over reused connections; one host's credentials are sent to no other host."""

    def __init__(self, public: bool) -> None:
        """Set whether only public addresses may be contacted."""
        self.public = public
        self.connections: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def get(
        self, url: str, headers: dict[str, str], own: dict[str, str], method: str = "GET"
    ) -> http.client.HTTPResponse:
        """Return the answer to a request, following redirects."""
        first = urllib.parse.urlsplit(url)
        for _ in range(REDIRECTS + 1):
            parts = urllib.parse.urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise FetchFailed("refused", f"its address leads elsewhere: to {parts.scheme}: addresses")
            shown = dict(headers)
            if (parts.scheme, parts.netloc) == (first.scheme, first.netloc):
                shown.update(own)
            answer = self.ask(parts, shown, method)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            answer.read()
            url = urllib.parse.urljoin(url, answer.headers.get("Location") or "")
        raise FetchFailed("refused", "its address leads on and on")

    def ask(
        self, parts: urllib.parse.SplitResult, headers: dict[str, str], method: str = "GET"
    ) -> http.client.HTTPResponse:
        """Make one request; try again on a new connection if a reused one has been closed."""
        key = (parts.scheme, parts.netloc)
        path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        for fresh in (False, True):
            connection = None if fresh else self.connections.pop(key, None)
            if connection is None and not fresh:
                continue
            connection = connection or self.connect(parts)
            try:
                connection.request(method, path, headers=headers)
                answer = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if fresh:
                    raise BrokenOff(str(error) or type(error).__name__) from error
                continue
            self.connections[key] = connection
            return answer
        raise BrokenOff("no connection")

    def connect(self, parts: urllib.parse.SplitResult) -> http.client.HTTPConnection:
        """Connect to a host, directly or through the system's proxy."""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
            if self.public:
                raise FetchFailed("unreachable", "its way out is a proxy, behind which addresses can't be checked")
            return self.connect_through(urllib.parse.urlsplit(proxy), parts, port)
        try:
            addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise FetchFailed(
                "unreachable", f"the name {parts.hostname} can't be resolved: {error.strerror}"
            ) from error
        if self.public and not all(is_public(str(entry[4][0])) for entry in addresses):
            raise FetchFailed("private", f"{parts.hostname} is not a public address")
        raw = self.open_any(addresses, parts.netloc.rpartition("@")[2])
        return self.wrap(parts, port, raw)

    def open_any(self, addresses: list[Any], name: str) -> socket.socket:
        """Connect to the first of these addresses that answers."""
        trouble: OSError | None = None
        for family, kind, protocol, _, address in addresses:
            raw = socket.socket(family, kind, protocol)
            raw.settimeout(CONNECT)
            try:
                raw.connect(address)
            except OSError as error:
                raw.close()
                trouble = error
            else:
                return raw
        raise FetchFailed("unreachable", f"{name} can't be reached: {trouble}")

    def wrap(self, parts: urllib.parse.SplitResult, port: int, raw: socket.socket) -> http.client.HTTPConnection:
        """Make an HTTP connection from a socket, with TLS for https."""
        connection = http.client.HTTPConnection(parts.hostname or "", port, timeout=SILENCE)
        if parts.scheme == "https":
            try:
                raw = ssl.create_default_context().wrap_socket(raw, server_hostname=parts.hostname)
            except (OSError, ValueError) as error:
                raw.close()
                raise FetchFailed("unreachable", f"{parts.hostname} can't be trusted: {error}") from error
        raw.settimeout(SILENCE)
        connection.sock = raw
        connection.default_port = 443 if parts.scheme == "https" else 80
        return connection

    def connect_through(
        self, proxy: urllib.parse.SplitResult, parts: urllib.parse.SplitResult, port: int
    ) -> http.client.HTTPConnection:
        """Connect through a proxy."""
        whole = parts.scheme == "https"
        kind = http.client.HTTPSConnection if whole else http.client.HTTPConnection
        connection = kind(proxy.hostname or "", proxy.port or 3128, timeout=CONNECT)
        connection.set_tunnel(parts.hostname or "", port)
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise FetchFailed(
                "unreachable", f"its proxy {proxy.hostname} does not lead to {parts.hostname}: {error}"
            ) from error
        connection.sock.settimeout(SILENCE)
        return connection
