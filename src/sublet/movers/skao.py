"""The mover of SKAO data: from the replicas that a request names, or from Rucio by the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.movers.arrival import check_checksum, guess, refuse, safe_name
from sublet.movers.http import SPEED
from sublet.movers.port import SIMPLE, Policy, ResolvedFile
from sublet.movers.rucio import RucioMover

KIND = "skao-data-resource"
NOWHERE = "It names no replica with a dataurl, and this service asks no Rucio server (rucio_server in its settings)."
MOST_REPLICAS = 1000


@dataclass
class SkaoMover:
    """Finds replicas, which other movers bring."""

    policy: Policy
    name: str = "skao"
    schemes: Sequence[str] = ("skao",)
    kinds: Sequence[str] = (SIMPLE, KIND)
    _rucio: RucioMover = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the Rucio mover, for data without replicas in the request."""
        self._rucio = RucioMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return a reason unless there are replicas or a Rucio server to ask."""
        if list_replicas(data):
            return check_checksum(data)
        if not self.policy.rucio_server:
            return [*check_checksum(data), refuse(data, NOWHERE, nearest="skao.replicas: [{dataurl: https://…}]")]
        return self._rucio.check(_as_rucio(data))

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        """Return the replicas in the order given; a single file gets its object name."""
        addresses = list_replicas(data)
        if not addresses:
            return await self._rucio.resolve(_as_rucio(data))
        is_file = _block(data).get("objecttype", "FILE") == "FILE"
        name = str(_block(data).get("objectname") or "") if is_file else ""
        replicas = [Data("", SIMPLE, address) for address in addresses]
        if is_file:
            replicas = [replace(replica, size=data.size, checksum=data.checksum) for replica in replicas]
        return [ResolvedFile(safe_name(name.rpartition("/")[2]) if name else "", replicas)]


def list_replicas(data: Data) -> list[str]:
    """Return the addresses of the replicas that a request names."""
    replicas = _block(data).get("replicas")
    rows = replicas[:MOST_REPLICAS] if isinstance(replicas, list) else []
    addresses = [str(row.get("dataurl") or "").strip() for row in rows if isinstance(row, Mapping)]
    return [address for address in addresses if address]


def _block(data: Data) -> Mapping[str, object]:
    block = data.fields.get("skao")
    return block if isinstance(block, Mapping) else {}


def _as_rucio(data: Data) -> Data:
    return replace(data, location=f"rucio:{data.location.partition(':')[2]}")
