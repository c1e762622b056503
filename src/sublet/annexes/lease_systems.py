"""The systems on which annexes have leases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sublet.annexes.leases import Leases
from sublet.annexes.model.annex import Lease
from sublet.annexes.model.lease_state import PENDING
from sublet.annexes.platforms import AnnexPlatforms
from sublet.booking.model.phases import STARTED
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.platforms.port import Platform
from sublet.store.store import Store


@dataclass(frozen=True, slots=True)
class LeaseOnSystem:
    """A lease that can take jobs, and its system."""

    lease: Lease
    session: Session
    platform: Platform


@dataclass
class LeaseSystems:
    """Finds the systems on which jobs of annexes can run."""

    store: Store
    platforms: KnownPlatforms
    leases: Leases
    annex_platforms: AnnexPlatforms

    async def list_leases(self) -> list[LeaseOnSystem]:
        """List every lease that has nodes, or waits for them, on a known system."""
        systems = []
        for lease in await self.store.read(lambda tx: tx.leases.live()):
            session = await self.leases.session_of(lease)
            platform = self.platforms.by_name.get(lease.details.system)
            if session and platform and session.phase in PENDING | STARTED and not session.cancel_by:
                systems.append(LeaseOnSystem(lease, session, platform))
        return systems

    async def find_systems(self, platform: str) -> Sequence[tuple[Platform, str]]:
        """Return the systems of an annex's platform, with the session of each lease; empty if it isn't an annex."""
        annex = self.annex_platforms.known.get(platform, {}).get("annex")
        return [(there.platform, there.session.id) for there in await self.list_leases() if there.lease.annex == annex]
