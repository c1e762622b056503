"""Advice on requests: what a person's earlier runs of the same program used, read seldom and remembered for a while."""

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

FRESH = timedelta(seconds=10)  # a hint may be so much behind the newest run
OTHERS = 20  # runs by everybody that are enough to speak of: fewer could tell of one person
MOST = 5000  # people and programs that are remembered


@dataclass
class KnownHabits:
    """What people's runs used, as far as it was looked at lately: an ask costs no more than a look into memory."""

    store: Store
    now: Clock
    _known: OrderedDict[tuple[str, str], tuple[datetime, RunHistory]] = field(default_factory=OrderedDict)

    async def recall(self, person: Person, request: Request) -> RunHistory:
        """The newest runs of what is asked for: one's own; of an app, if those are too few, everybody's."""
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
        """Hints: what of a request is more than one's own runs needed, and how much would do."""
        return find_habits(history.runs, history.program, request) if history.whose == "own" else ()


def _read_history(tx: Tx, person: str, label: str, now: datetime) -> RunHistory:
    program = describe_program(label)
    own = make_history(tx.habits.of(person, label), program)
    if len(own.runs) >= ENOUGH or not label.startswith(APP):
        return own
    others = tx.archive.list_runs(program, now - RECENT)
    return make_history(others, program, "all") if len(others) >= OTHERS else own
