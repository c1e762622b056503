"""Poems by `poem:` addresses: `poem://HOST/NAME`. Nothing is asked of the host, but that it may be asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import missing
from sublet.movers.port import Policy, Progress


@dataclass
class PoemMover:
    """Brings poems, within the policy."""

    policy: Policy
    name: str = "poem"
    schemes: Sequence[str] = ("poem",)

    def check(self, data: Data) -> Sequence[Reason]:
        """Every address will do."""
        return ()

    async def measure(self, data: Data) -> int | None:
        """Nobody knows."""
        return None

    def estimate(self, data: Data) -> timedelta:
        """A moment."""
        return timedelta(0)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Write it; a private address is refused where the policy says so."""
        if self.policy.public_only:
            try:
                await public_addresses(urlsplit(data.location).hostname or "", 443)
            except NotPublic as error:
                raise missing(data, f"the policy refuses it: {error}") from error
        roots = "any" if self.policy.file_roots is None else len(self.policy.file_roots)
        (target / "poem.txt").write_text(f"a poem; largest {self.policy.largest}; file roots {roots}\n")
