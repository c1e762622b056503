"""A new master key: all that is sealed is sealed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import OperatorsOnly
from sublet.people.model.person import Person
from sublet.store.store import Store


class Sealer(Protocol):
    """Stores something sealed."""

    async def reseal(self) -> dict[str, int]:
        """Seal it with the newest master key: noun → how many."""
        ...


@dataclass
class Rekeying:
    """Has everyone who stores something sealed seal it anew."""

    store: Store
    now: Clock
    sealers: Sequence[Sealer]

    async def rekey(self, person: Person, *, host: str = "") -> dict[str, int]:
        """Seal all that is stored with the newest master key."""
        if not person.operator:
            raise OperatorsOnly
        counts: dict[str, int] = {}
        for sealer in self.sealers:
            counts |= await sealer.reseal()
        entry = AuditEntry(self.now(), person.name, "vault.rekey", "vault", "", counts, host)
        await self.store.write(lambda tx: tx.audit.add(entry))
        return counts
