"""What a namespace's LimitRanges demand of each container and each pod, and how pods keep to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.kubernetes.amounts import parse_quantity, write_quantity
from sublet.platforms.kubernetes.api import ApiServer, Object

LITTLE = {"cpu": "0", "memory": "16Mi"}  # requests of the helper containers
MOST = {"cpu": "200m", "memory": "128Mi"}
DISK, MOST_DISK = "ephemeral-storage", "64Mi"  # a helper's disk, where that is limited
NONE = Decimal(0)


@dataclass(frozen=True, slots=True)
class PodBounds:
    """The strictest of all LimitRanges of a namespace, by resource."""

    least: Mapping[str, Decimal] = field(default_factory=dict)  # of a container
    least_together: Mapping[str, Decimal] = field(default_factory=dict)  # of all containers of a pod
    most: Mapping[str, Decimal] = field(default_factory=dict)
    most_together: Mapping[str, Decimal] = field(default_factory=dict)
    even: frozenset[str] = frozenset()  # resources whose limits must be near their requests
    others: frozenset[str] = frozenset()  # besides cores and memory: a container that doesn't say is given some of them

    def size_helper(self) -> Object:
        """Return the requests and limits of a helper container."""
        limits, requests = {}, {}
        for name, usual in MOST.items():
            most = max(parse_quantity(usual), self.least.get(name, Decimal(0)))
            limits[name] = min(most, self.most.get(name, most))
            little = max(parse_quantity(LITTLE[name]), self.least.get(name, Decimal(0)))
            requests[name] = limits[name] if name in self.even else min(little, limits[name])
        for name in self.others - {DISK}:
            requests[name] = limits[name] = self.least.get(name, NONE)
        if self._limits_disk:
            most = max(parse_quantity(MOST_DISK), self.least.get(DISK, NONE))
            limits[DISK] = min(most, self.most.get(DISK, most))
            requests[DISK] = limits[DISK] if DISK in self.even else self.least.get(DISK, NONE)
        return {"requests": _write(requests), "limits": _write(limits)}

    @property
    def _limits_disk(self) -> bool:
        return DISK in self.most or DISK in self.most_together

    def size_main(self, amounts: Mapping[str, str]) -> Object:
        """Return the requests and limits of the program: what was offered, or the least that there is.

        Of what wasn't asked for, such as GPUs, it gets the least, and not the namespace's default. Disk that wasn't
        asked for is only limited.
        """
        unasked = self.others if self._limits_disk else self.others - {DISK}
        sized = {**dict.fromkeys(unasked, "0"), **amounts}
        for name, amount in sized.items():
            least = max(self.least.get(name, NONE), self.least_together.get(name, NONE))
            if parse_quantity(amount) < least:
                sized[name] = write_quantity(least)
        limits = dict(sized)
        if DISK not in amounts and (most := self.find_most(DISK)):
            limits[DISK] = str(most)
        return {"requests": sized, "limits": limits}

    def find_most(self, name: str) -> int | None:
        """Return the most of a resource that a session may have, in whole units; None if there is no bound."""
        beside = parse_quantity(self.size_helper()["limits"].get(name, "0"))
        bounds = [self.most[name]] if name in self.most else []
        bounds += [self.most_together[name] - beside] if name in self.most_together else []
        return max(0, int(min(bounds))) if bounds else None


NO_BOUNDS = PodBounds()


def read_bounds(ranges: Iterable[Mapping[str, Any]]) -> PodBounds:
    """Return what all LimitRanges of a namespace demand together."""
    least: dict[str, Decimal] = {}
    least_together: dict[str, Decimal] = {}
    most: dict[str, dict[str, Decimal]] = {"Container": {}, "Pod": {}}
    even: set[str] = set()
    named: set[str] = set()
    for each in (limit for listed in ranges for limit in (listed.get("spec") or {}).get("limits") or ()):
        kind = each.get("type")
        if kind not in most:
            continue  # for claims of storage
        for name, bound in (each.get("max") or {}).items():
            most[kind][name] = min(parse_quantity(bound), most[kind].get(name, parse_quantity(bound)))
        target = least if kind == "Container" else least_together
        for name, bound in (each.get("min") or {}).items():
            target[name] = max(parse_quantity(bound), target.get(name, Decimal(0)))
        even |= set(each.get("maxLimitRequestRatio") or ())
        named |= {name for part in ("max", "min", "default", "defaultRequest") for name in each.get(part) or ()}
    others = frozenset(named - MOST.keys())
    return PodBounds(least, least_together, most["Container"], most["Pod"], frozenset(even), others)


async def find_bounds(api: ApiServer) -> PodBounds:
    """Ask for the LimitRanges of our namespace; if they may not be seen, there are none that we can keep to."""
    try:
        return read_bounds((await api.list(api.path_of("limitranges"))).get("items") or ())
    except PlatformRefused:
        return NO_BOUNDS


def _write(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: write_quantity(amount) for name, amount in amounts.items()}
