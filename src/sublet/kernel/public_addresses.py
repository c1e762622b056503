"""Only public addresses: what strangers ask for must not reach this machine or its private networks."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import httpx2


class NotPublic(Exception):
    """The name leads to this machine or to a private network; the message says so."""


async def public_addresses(host: str, port: int) -> list[str]:
    """What a name means now, if all of that is public; NotPublic otherwise."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if not addresses or not all(map(_public, addresses)):
        raise NotPublic(f"{host} is not a public address")
    return addresses


HOLDS_IPV4 = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::/96")))  # NAT64, and the oldest writing of all


def _public(text: str) -> bool:
    """Whether it is public itself, and so is an IPv4 address that it stands for."""
    address = ipaddress.ip_address(text.partition("%")[0])
    inner = _inner(address) if isinstance(address, ipaddress.IPv6Address) else None
    return address.is_global and not address.is_multicast and (inner is None or _public(str(inner)))


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if any(address in network for network in HOLDS_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


class PublicOnly(httpx2.AsyncHTTPTransport):
    """Looks each name up itself and connects to what it found, so that a second answer can't lead elsewhere."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Refuse a private address, also one that a redirection leads to."""
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            addresses = await public_addresses(host, port)
        except NotPublic as error:
            raise httpx2.UnsupportedProtocol(str(error), request=request) from error
        pinned = (
            httpx2.Request(  # its header Host keeps the name, and so does the request that a redirection is read by
                request.method,
                request.url.copy_with(host=addresses[0]),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
        )
        return await super().handle_async_request(pinned)
