"""Only public addresses: what strangers ask for must not reach this machine or its private networks."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import httpx2


class PublicOnly(httpx2.AsyncHTTPTransport):
    """Looks each name up itself and connects to what it found, so that a second answer can't lead elsewhere."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Refuse a private address, also one that a redirection leads to."""
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in found]
        if not addresses or not all(ipaddress.ip_address(address).is_global for address in addresses):
            raise httpx2.UnsupportedProtocol(f"{host} is not a public address", request=request)
        request.url = request.url.copy_with(host=addresses[0])  # the header Host keeps the name
        request.extensions = {**request.extensions, "sni_hostname": host}
        return await super().handle_async_request(request)
