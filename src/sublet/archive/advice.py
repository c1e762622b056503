"""Advice on requests: what a person's earlier runs of the same program used, read seldom and remembered for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.archive.model.habits import Run, find_habits, label_of
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.kernel.clock import Clock
from sublet.people.model.person import Person
from sublet.store.store import Store

FRESH = timedelta(minutes=1)  # a hint may be so much behind the newest run
MOST = 5000  # people and programs that are remembered


@dataclass
class KnownHabits:
    """What people's runs used, as far as it was looked at lately: an ask costs no more than a look into memory."""

    store: Store
    now: Clock
    _known: OrderedDict[tuple[str, str], tuple[datetime, Sequence[Run]]] = field(default_factory=OrderedDict)

    async def advise(self, person: Person, request: Request) -> Sequence[Reason]:
        """Hints: what of a request is more than such runs needed, and how much would do."""
        label = label_of(request.executable)
        return find_habits(await self._recall(person.name, label), label, request) if label else ()

    async def _recall(self, person: str, label: str) -> Sequence[Run]:
        now, key = self.now(), (person, label)
        read, runs = self._known.get(key, (None, ()))
        if read is None or not read <= now < read + FRESH:
            runs = await self.store.read(lambda tx: tx.habits.of(person, label))
            self._known[key] = now, runs
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return runs
