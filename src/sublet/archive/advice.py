"""Advice on requests from what a person's earlier runs of the same program used, cached for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.archive.model.habits import APP, describe_program, find_habits, label_of
from sublet.booking.model.estimate import RECENT
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.booking.model.run_time import ENOUGH, UNKNOWN, RunHistory, make_history
from sublet.kernel.clock import Clock
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

FRESH = timedelta(seconds=10)  # how old the cached history may be
OTHERS = 20  # runs by everybody that are needed; fewer could reveal one person's
MOST = 5000  # cached pairs of a person and a program


@dataclass
class KnownHabits:
    """A cache of what people's runs used, so that most requests need no read of the database."""

    store: Store
    now: Clock
    _known: OrderedDict[tuple[str, str], tuple[datetime, RunHistory]] = field(default_factory=OrderedDict)

    async def recall(self, person: Person, request: Request) -> RunHistory:
        """Return the newest runs of the requested program: one's own or, for an app with too few, everybody's."""
        label = label_of(request.executable)
        if not label:
            return UNKNOWN
        now, key = self.now(), (person.name, label)
        read, history = self._known.get(key, (None, UNKNOWN))
        if read is None or not read <= now < read + FRESH:
            history = await self.store.read(lambda tx: _read_history(tx, person.name, label, now))
            self._known[key] = now, history
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return history

    def advise(self, history: RunHistory, request: Request) -> Sequence[Reason]:
        """Return hints where a request asks for more than the person's own runs needed."""
        return find_habits(history.runs, history.program, request) if history.whose == "own" else ()


def _read_history(tx: Tx, person: str, label: str, now: datetime) -> RunHistory:
    program = describe_program(label)
    own = make_history(tx.habits.of(person, label), program)
    if len(own.runs) >= ENOUGH or not label.startswith(APP):
        return own
    others = tx.archive.list_runs(program, now - RECENT)
    return make_history(others, program, "all") if len(others) >= OTHERS else own
