"""Rekeying: everything that is sealed is sealed again with a new master key."""

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
    """A use case that stores sealed secrets."""

    async def reseal(self) -> dict[str, int]:
        """Seal the secrets with the newest master key; return noun → how many."""
        ...


@dataclass
class Rekeying:
    """Has all use cases with sealed secrets seal them again."""

    store: Store
    now: Clock
    sealers: Sequence[Sealer]

    async def rekey(self, person: Person, *, host: str = "") -> dict[str, int]:
        """Seal all stored secrets with the newest master key."""
        if not person.operator:
            raise OperatorsOnly
        counts: dict[str, int] = {}
        for sealer in self.sealers:
            counts |= await sealer.reseal()
        entry = AuditEntry(self.now(), person.name, "vault.rekey", "vault", "", counts, host)
        await self.store.write(lambda tx: tx.audit.add(entry))
        return counts
