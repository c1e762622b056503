"""What a person does under an idempotency key: done once, however often it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.store.tx import Tx


@dataclass(frozen=True, slots=True)
class KeyedAct:
    """An act of a person, with all that it was asked to do; without a key it is new each time."""

    person: str
    action: str
    key: str | None
    request: str

    def is_done(self, tx: Tx) -> bool:
        """Whether it was done under this key; raise KeyReused if the key was used for another request."""
        return bool(self.key) and tx.keys.is_bound(self.person, self.action, self.key or "", self.request)

    def note(self, tx: Tx, now: datetime) -> bool:
        """Record in the write that does it that it is done, and return whether it is new."""
        return not self.key or tx.keys.bind(self.person, self.action, self.key, self.request, now)
