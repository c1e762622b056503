"""Restricts connections to public addresses: strangers' requests must not reach this machine or private networks."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import httpx2


class NotPublic(Exception):
    """A host name has a non-public address, such as one of this machine or a private network; the message names it."""


async def public_addresses(host: str, port: int) -> list[str]:
    """Resolve a host name; raise NotPublic unless all of its addresses are public."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if not addresses or not all(map(_public, addresses)):
        raise NotPublic(f"{host} is not a public address")
    return addresses


HOLDS_IPV4 = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::/96")))  # NAT64, and the old IPv4-compatible form


def _public(text: str) -> bool:
    """Whether an address is public, and so is any IPv4 address embedded in it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    inner = _inner(address) if isinstance(address, ipaddress.IPv6Address) else None
    return address.is_global and not address.is_multicast and (inner is None or _public(str(inner)))


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if any(address in network for network in HOLDS_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


class PublicOnly(httpx2.AsyncHTTPTransport):
    """A transport that resolves names itself and connects to the address that it checked, against DNS rebinding."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request, or raise UnsupportedProtocol if its host isn't public, also after a redirect."""
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            addresses = await public_addresses(host, port)
        except NotPublic as error:
            raise httpx2.UnsupportedProtocol(str(error), request=request) from error
        pinned = (
            httpx2.Request(  # the Host header and the caller's request keep the name, which redirects are resolved by
                request.method,
                request.url.copy_with(host=addresses[0]),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
        )
        return await super().handle_async_request(pinned)
