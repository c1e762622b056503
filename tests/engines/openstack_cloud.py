"""One real OpenStack for all tests of a run: its people, and what its project has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.openstack.cloud import Cloud

from sublet.platforms.openstack.access import CloudSettings, open_cloud
from sublet.platforms.openstack.addresses import CloudAddresses
from sublet.platforms.openstack.api import CloudCalls
from sublet.platforms.openstack.compute import CloudCompute
from sublet.platforms.openstack.platform import OpenStack

SMALL = ("tiny", "small", "wide")


@dataclass(frozen=True)
class Project:
    """The project that people of the cloud share."""

    cloud: Cloud
    folder: Path

    def settings(self, person: str = "alice", **more: Any) -> dict[str, Any]:
        """Those of a platform, for someone with a clouds.yaml."""
        file = self.cloud.write_config(self.folder / f"{person}.yaml", person)
        usual = {"image": "guest", "network": "none", "flavors": SMALL, "reserve": "128MiB", "grace": "2s"}
        return {"clouds_file": str(file), **usual, **more}

    def platform(self, person: str = "alice", **more: Any) -> OpenStack:
        """A platform for someone."""
        return OpenStack(name="sky", **self.settings(person, **more))

    def compute(self, person: str = "alice") -> CloudCompute:
        """Nova, as someone sees it."""
        file = self.cloud.write_config(self.folder / f"{person}-own.yaml", person)
        return CloudCompute(CloudCalls("sky", open_cloud(CloudSettings(clouds_file=str(file)), environment={})))

    async def list_names(self) -> list[str]:
        """The servers and keys of Sublet in the project."""
        compute = self.compute()
        try:
            servers = [server.name for server in await compute.list_servers("sublet-")]
            return sorted([*servers, *await compute.list_keys("sublet-")])
        finally:
            await compute.calls.close()

    async def list_floating(self) -> list[str]:
        """The names of servers that floating IPs of the project are for."""
        compute = self.compute()
        try:
            return await CloudAddresses(compute.calls).list_names("")
        finally:
            await compute.calls.close()
