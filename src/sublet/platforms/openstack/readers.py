"""Readers for the answers of Nova and Glance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sublet.booking.model.shape import Shape

MIB, GIB = 1 << 20, 1 << 30
UNLIMITED = 1 << 40  # for a quota without a limit
GPU = re.compile(r"^resources\d*:(VGPU|PGPU|CUSTOM_[A-Z0-9_]*GPU[A-Z0-9_]*)$")
ALIAS = "pci_passthrough:alias"
TRAIT = re.compile(r"^trait\d*:")
AGGREGATE = "aggregate_instance_extra_specs:"


@dataclass(frozen=True, slots=True)
class Flavor:
    """A size of servers."""

    id: str
    name: str
    cores: int
    memory: int  # in bytes
    disk: int  # in bytes
    gpus: int = 0
    gpu_types: tuple[str, ...] = ()  # the cloud's names of its devices
    features: tuple[str, ...] = ()  # required traits of hosts, and NAME=VALUE of their aggregates

    def describe(self) -> str:
        """Describe the flavor for people."""
        types = f" ({', '.join(self.gpu_types)})" if self.gpu_types else ""
        gpus = f", {self.gpus} GPUs{types}" if self.gpus else ""
        return f"{self.name} ({self.cores} cores, {self.memory // MIB} MiB, {self.disk // GIB} GiB of disk{gpus})"


@dataclass(frozen=True, slots=True)
class ProjectQuota:
    """What a project may have, and what it has."""

    cores: int
    memory: int
    servers: int
    cores_used: int = 0
    memory_used: int = 0
    servers_used: int = 0


@dataclass(frozen=True, slots=True)
class Image:
    """An image that servers start from."""

    id: str
    name: str
    least_memory: int = 0
    least_disk: int = 0


@dataclass(frozen=True, slots=True)
class CloudServer:
    """A virtual machine, as Nova describes it."""

    id: str
    name: str
    status: str
    task: str = ""
    fault: str = ""
    created: datetime | None = None
    launched: datetime | None = None
    cores: int = 0
    memory: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()  # in its networks, IPv4 first

    @property
    def is_being_made(self) -> bool:
        """Whether the server is still being created."""
        return self.status in ("BUILD", "UNKNOWN", "")

    @property
    def is_off(self) -> bool:
        """Whether nothing runs in the server any more."""
        return self.status in ("SHUTOFF", "STOPPED", "SHELVED", "SHELVED_OFFLOADED", "CRASHED")

    @property
    def is_gone(self) -> bool:
        """Whether the server is deleted, and only remembered."""
        return self.status in ("DELETED", "SOFT_DELETED")


def read_time(text: object) -> datetime | None:
    """Read a time; Nova writes UTC, with and without a zone."""
    if not isinstance(text, str) or not text:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_server(value: Mapping[str, Any]) -> CloudServer:
    """Read a server."""
    flavor = value.get("flavor") or {}
    return CloudServer(
        id=str(value["id"]),
        name=str(value.get("name") or ""),
        status=str(value.get("status") or ""),
        task=str(value.get("OS-EXT-STS:task_state") or ""),
        fault=" ".join(str((value.get("fault") or {}).get("message") or "").split()),
        created=read_time(value.get("created")),
        launched=read_time(value.get("OS-SRV-USG:launched_at")),
        cores=int(flavor.get("vcpus") or 0),
        memory=int(flavor.get("ram") or 0) * MIB,
        metadata={str(name): str(text) for name, text in (value.get("metadata") or {}).items()},
        addresses=read_addresses(value.get("addresses") or {}),
    )


def read_addresses(networks: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fixed addresses of a server, IPv4 first."""
    listed = [each for network in networks.values() for each in network]
    fixed = [each for each in listed if each.get("OS-EXT-IPS:type", "fixed") == "fixed"]
    return tuple(str(each["addr"]) for each in sorted(fixed, key=lambda each: int(each.get("version") or 4)))


def read_flavor(value: Mapping[str, Any], specs: Mapping[str, str]) -> Flavor:
    """Read a flavor; `specs` are its extra specs, which name its devices."""
    disk = (int(value.get("disk") or 0) + int(value.get("OS-FLV-EXT-DATA:ephemeral") or 0)) * GIB
    return Flavor(
        str(value["id"]),
        str(value.get("name") or value["id"]),
        int(value["vcpus"]),
        int(value["ram"]) * MIB,
        disk,
        count_gpus(specs),
        tuple(dict.fromkeys(name for name, _ in _list_devices(specs))),
        list_features(specs),
    )


def count_gpus(specs: Mapping[str, str]) -> int:
    """Return how many GPUs a flavor's extra specs ask for; an alias counts only if its name contains gpu."""
    return sum(count for _, count in _list_devices(specs))


def _list_devices(specs: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the GPUs of a flavor: the cloud's name of the device, and how many."""
    for spec, text in specs.items():
        if (match := GPU.match(spec)) and text.isdigit():
            yield match[1], int(text)
    for part in specs.get(ALIAS, "").split(","):
        name, _, number = part.strip().partition(":")
        if "gpu" in name.lower() and (number or "1").isdigit():
            yield name, int(number or 1)


def list_features(specs: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a flavor requires of its host: `CUSTOM_SSD` for `trait:CUSTOM_SSD`, and `ssd=true` of an
    aggregate."""
    traits = [name.partition(":")[2] for name, text in specs.items() if TRAIT.match(name) and text == "required"]
    pairs = [f"{name.partition(':')[2]}={text}" for name, text in specs.items() if name.startswith(AGGREGATE)]
    return tuple(sorted([*traits, *pairs]))


def read_quota(limits: Mapping[str, Any]) -> ProjectQuota:
    """Read a project's quota from Nova's limits."""
    absolute = (limits.get("limits") or {}).get("absolute") or {}

    def read_most(name: str, unit: int = 1) -> int:
        number = int(absolute.get(name, -1))
        return UNLIMITED * unit if number < 0 else number * unit

    def read_used(name: str) -> int:
        return max(0, int(absolute.get(name) or 0))

    return ProjectQuota(
        read_most("maxTotalCores"),
        read_most("maxTotalRAMSize", MIB),
        read_most("maxTotalInstances"),
        read_used("totalCoresUsed"),
        read_used("totalRAMUsed") * MIB,
        read_used("totalInstancesUsed"),
    )


def read_image(value: Mapping[str, Any]) -> Image:
    """Read an image."""
    return Image(
        str(value["id"]),
        str(value.get("name") or ""),
        int(value.get("min_ram") or 0) * MIB,
        int(value.get("min_disk") or 0) * GIB,
    )


def choose_flavor(flavors: Iterable[Flavor], shape: Shape, image: Image, reserve: int) -> Flavor | None:
    """Return the smallest flavor that is enough for the request and for the system itself, or None."""
    needed = max(shape.memory + reserve, image.least_memory)
    disk = max(shape.disk, image.least_disk)
    enough = [
        flavor
        for flavor in flavors
        if flavor.cores >= shape.cores
        and flavor.memory >= needed
        and flavor.disk >= disk
        and flavor.gpus >= shape.gpus
        and (shape.gpus or not flavor.gpus)
    ]
    return min(enough, key=lambda flavor: (flavor.cores, flavor.memory, flavor.disk, flavor.name), default=None)
