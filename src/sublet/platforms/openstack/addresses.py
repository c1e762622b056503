"""Calls to Neutron: networks by name, and floating IPs, which are identified by their server's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.openstack.api import CloudCalls, read_object


class CloudAddresses:
    """The addresses of one project's servers."""

    def __init__(self, calls: CloudCalls) -> None:
        """Set up without connecting."""
        self.calls = calls

    async def find_network(self, named: str) -> str:
        """Return the ID of a network, given by its ID or its name."""
        if is_uuid(named):
            return named
        networks = (await self.calls.get("network", f"/v2.0/networks?{urlencode({'name': named})}"))["networks"]
        if not networks:
            why = f"there is no network {named} that you may use"
            raise PlatformRefused(platform=self.calls.platform, why=why)
        return str(networks[0]["id"])

    async def have_floating(self, network: str, server: str, name: str) -> str:
        """Return a floating IP that leads to a server; one that a lost answer left under this name is used again."""
        listed = [each for each in await self._list_floating() if each.get("description") == name]
        if listed:
            return str(listed[0]["floating_ip_address"])
        query = urlencode({"device_id": server})
        ports = (await self.calls.get("network", f"/v2.0/ports?{query}")).get("ports") or []
        if not ports:
            why = "its virtual machine has no port in a network that a floating IP could lead to"
            raise PlatformRefused(platform=self.calls.platform, why=why)
        wanted = {
            "floating_network_id": await self.find_network(network),
            "port_id": ports[0]["id"],
            "description": name,
        }
        answer = await self.calls.call("network", "POST", "/v2.0/floatingips", {"floatingip": wanted})
        made = read_object(answer.content, self.calls.platform)["floatingip"]
        return str(made["floating_ip_address"])

    async def release(self, name: str) -> bool:
        """Release the floating IPs of a server, and return whether there were any."""
        listed = [each for each in await self._list_floating() if each.get("description") == name]
        for each in listed:
            path = f"/v2.0/floatingips/{quote(str(each['id']), safe='')}"
            await self.calls.call("network", "DELETE", path, allow=(404,))
        return bool(listed)

    async def list_names(self, prefix: str) -> list[str]:
        """Return the names of servers with this prefix that floating IPs were allocated for."""
        names = [str(each.get("description") or "") for each in await self._list_floating()]
        return [name for name in names if name.startswith(prefix)]

    async def _list_floating(self) -> list[Mapping[str, Any]]:
        return (await self.calls.get("network", "/v2.0/floatingips")).get("floatingips") or []


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID, and so an ID instead of a name."""
    try:
        return bool(UUID(text))
    except ValueError:
        return False
