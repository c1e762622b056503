"""Calls to Nova, Glance and Neutron: flavors, images, servers, their consoles, and key pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.openstack.addresses import CloudAddresses, is_uuid
from sublet.platforms.openstack.api import CloudCalls, Object, read_object
from sublet.platforms.openstack.readers import (
    CloudServer,
    Flavor,
    Image,
    ProjectQuota,
    read_flavor,
    read_image,
    read_quota,
    read_server,
)

SAYS_NOTHING = (404, 409, 501)


class CloudCompute:
    """One project of a cloud."""

    def __init__(self, calls: CloudCalls) -> None:
        """Set up without connecting."""
        self.calls = calls

    @property
    def platform(self) -> str:
        """The name of the platform."""
        return self.calls.platform

    async def read_quota(self) -> ProjectQuota:
        """Return what the project may have, and what it has."""
        return read_quota(await self.calls.get("compute", "/limits"))

    async def list_flavors(self, names: Sequence[str]) -> list[Flavor]:
        """List the flavors that have a disk, restricted to these names if any are given."""
        listed = (await self.calls.get("compute", "/flavors/detail"))["flavors"]
        wanted = [each for each in listed if not names or each["name"] in names or each["id"] in names]
        flavors = []
        for each in wanted:
            if each.get("OS-FLV-DISABLED:disabled") or not each.get("disk"):
                continue  # without its own disk, a server would need a volume
            flavors.append(read_flavor(each, await self._read_specs(each["id"])))
        return flavors

    async def _read_specs(self, flavor: str) -> Mapping[str, str]:
        path = f"/flavors/{quote(flavor, safe='')}/os-extra_specs"
        answer = await self.calls.call("compute", "GET", path, allow=(403, 404))
        return read_object(answer.content, self.platform).get("extra_specs") or {} if answer.is_success else {}

    async def find_image(self, named: str) -> Image:
        """Return the image with a name or an ID; the newest of several with the same name."""
        if is_uuid(named):
            return read_image(await self.calls.get("image", f"/v2/images/{named}"))
        query = urlencode({"name": named, "status": "active", "sort": "created_at:desc"})
        images = (await self.calls.get("image", f"/v2/images?{query}")).get("images") or []
        if not images:
            raise PlatformRefused(platform=self.platform, why=f"there is no image {named} that you may use")
        return read_image(images[0])

    async def find_network(self, named: str) -> object:
        """Return Nova's parameter for networks: `auto`, `none`, or one network."""
        if named in ("auto", "none"):
            return named
        return [{"uuid": await CloudAddresses(self.calls).find_network(named)}]

    async def list_servers(self, prefix: str) -> list[CloudServer]:
        """List the project's servers whose names begin with a prefix."""
        path: str | None = f"/servers/detail?{urlencode({'name': f'^{re.escape(prefix)}'})}"
        servers: list[CloudServer] = []
        while path:
            page = await self.calls.get("compute", path)
            servers += [read_server(each) for each in page.get("servers") or ()]
            following = [link["href"] for link in page.get("servers_links") or () if link.get("rel") == "next"]
            path = f"/servers/detail?{urlsplit(following[0]).query}" if following else None
        return [server for server in servers if server.name.startswith(prefix) and not server.is_gone]

    async def find_server(self, id: str) -> CloudServer | None:
        """Return a server; None if there is none or it was deleted."""
        answer = await self.calls.call("compute", "GET", f"/servers/{quote(id, safe='')}", allow=(404,))
        if not answer.is_success:
            return None
        server = read_server(read_object(answer.content, self.platform)["server"])
        return None if server.is_gone else server

    async def create_server(self, server: Mapping[str, Any]) -> str:
        """Create a server and return its ID. Calling this twice isn't safe: see `SessionServers`."""
        answer = await self.calls.call("compute", "POST", "/servers", {"server": server})
        return str(read_object(answer.content, self.platform)["server"]["id"])

    async def delete_server(self, id: str) -> None:
        """Delete a server; ignore that it is already gone."""
        await self.calls.call("compute", "DELETE", f"/servers/{quote(id, safe='')}", allow=(404,))

    async def act(self, id: str, action: str) -> bool:
        """Have a server do something; return False if it is gone, or can't do that in its current state."""
        answer = await self.calls.call("compute", "POST", f"/servers/{id}/action", {action: None}, allow=(404, 409))
        return answer.is_success

    async def read_console(self, id: str) -> str | None:
        """Return the end of a server's console output; None if nothing can be read for now."""
        body: Object = {"os-getConsoleOutput": {}}
        answer = await self.calls.call("compute", "POST", f"/servers/{id}/action", body, allow=SAYS_NOTHING)
        if not answer.is_success:
            return None
        return str(read_object(answer.content, self.platform).get("output") or "")

    async def create_key(self, name: str, public: str) -> None:
        """Create a key pair; an existing one of this name is accepted."""
        await self.calls.call(
            "compute", "POST", "/os-keypairs", {"keypair": {"name": name, "public_key": public}}, allow=(409,)
        )

    async def delete_key(self, name: str) -> None:
        """Delete a key pair: from now on Nova creates no server that names it."""
        await self.calls.call("compute", "DELETE", f"/os-keypairs/{quote(name, safe='')}", allow=(404,))

    async def list_keys(self, prefix: str) -> list[str]:
        """List the key pairs whose names begin with a prefix."""
        keys = (await self.calls.get("compute", "/os-keypairs")).get("keypairs") or []
        return [name for each in keys if (name := str(each["keypair"]["name"])).startswith(prefix)]
