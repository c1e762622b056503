"""The settings of an OpenStack platform: its credentials, and how its machines are made and reached."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sublet.platforms.openstack.access import CloudSettings
from sublet.platforms.openstack.bastion import Bastion
from sublet.platforms.openstack.door import DoorSettings
from sublet.platforms.openstack.servers import ServerPlace
from sublet.platforms.openstack.userdata import GuestTimes
from sublet.platforms.port import Duration, Memory, Platform


class OpenStackSettings(Platform):
    """The settings of a project of an OpenStack cloud."""

    kind: ClassVar[str] = "openstack"
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    fetches: ClassVar[bool] = False
    cloud: str = Field(default="", description="The cloud in clouds.yaml; empty: $OS_CLOUD, or the only one there.")
    clouds_file: str = Field(
        default="",
        description="That file; empty: $OS_CLIENT_CONFIG_FILE, ~/.config/openstack/clouds.yaml, /etc/openstack/.",
    )
    auth_url: str = Field(default="", description="Instead of clouds.yaml: Keystone's https address.")
    application_credential: str = Field(default="", description="With auth_url: the id of an application credential.")
    secret_file: str = Field(
        default="",
        description="A file with its secret, which only you can read; default: what `sublet credential add AUTH_URL "
        "--token` has sealed.",
    )
    secret_of: str = Field(default="", description="Whose credential that is; default: the service's own person's.")
    region: str = Field(default="", description="The region; empty: that of clouds.yaml, else the first.")
    authority: str = Field(default="", description="The file with the certificate that the cloud is known by.")
    image: str = Field(description="The image of all sessions, by name or id: with cloud-init and Python.")
    tools: tuple[str, ...] = Field(default=("python3",), description="What that image has of what kinds need.")
    flavors: tuple[str, ...] = Field(default=(), description="The flavors that may be used; empty: all with a disk.")
    network: str = Field(default="auto", description="A network, by name or id; `auto`: the project's own; `none`.")
    security_groups: tuple[str, ...] = Field(default=(), description="Security groups; empty: the project's default.")
    zone: str = Field(default="", description="The availability zone; empty: any.")
    address: Literal["", "fixed", "floating"] = Field(
        default="",
        description="How machines are reached by ssh, for large files and for people: `fixed`, at their own address in "
        "`network`; `floating`, at a floating IP; empty: not at all.",
    )
    floating_network: str = Field(default="", description="With `floating`: the network of those, by name or id.")
    ssh_port: int = Field(default=2222, ge=1, le=65535, description="Where a machine listens for the service's ssh.")
    bastion: str = Field(
        default="",
        pattern=r"^([^-\s]\S*)?$",
        description="A host that ssh goes through, as USER@HOST:PORT or as it is in ~/.ssh/config.",
    )
    bastion_ssh: dict[str, str] = Field(
        default_factory=dict,
        description="More options for ssh to the bastion, as in ssh_config(5): its `IdentityFile`, or the "
        "`UserKnownHostsFile` with its host key.",
    )
    reserve: Memory = Field(
        default=128 << 20, ge=0, description="Memory of a virtual machine that its own system takes, beside a session."
    )
    longest: Duration | None = Field(default=None, description="The longest time of a session; unset: any.")
    spare: Duration = Field(
        default=timedelta(hours=12),
        description="How long after its time a session goes on that nobody stops; it can be extended by as much.",
    )
    grace: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="Time between SIGTERM and SIGKILL, also at the end."
    )
    keep_results: Duration = Field(
        default=timedelta(days=1), description="How long a virtual machine shows what is too large for its console."
    )
    patience: Duration = Field(
        default=timedelta(minutes=10), description="How long a virtual machine may be up before it is heard of."
    )
    output_limit: Memory = Field(
        default=1 << 30, ge=1 << 10, description="How much of stdout, and of stderr, is shown."
    )

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        if self.address == "floating" and not self.floating_network:
            raise ValueError("address = floating needs floating_network, the name of the network of floating IPs")
        if self.address and self.network == "none":
            raise ValueError(f"address = {self.address} needs a network, and network is none")
        return self

    @property
    def door_settings(self) -> DoorSettings:
        """How machines are reached."""
        bastion = Bastion(self.bastion, self.bastion_ssh)
        return DoorSettings(self.address, self.ssh_port, self.floating_network, bastion, self.network != "none")

    @property
    def cloud_settings(self) -> CloudSettings:
        """The settings that concern access."""
        return CloudSettings(
            self.cloud, self.clouds_file, self.auth_url, self.application_credential, self.region, self.authority
        )

    def describe_place(self, owner: str) -> ServerPlace:
        """Return how servers are made."""
        return ServerPlace(
            owner=owner,
            image=self.image,
            network=self.network,
            zone=self.zone,
            security_groups=self.security_groups,
            times=GuestTimes(self.grace, self.spare, self.keep_results),
            patience=self.patience,
        )
