"""The SQL of habits: one small row for each person and program, with what the newest runs used."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from sublet.archive.model.habits import KEPT
from sublet.archive.store.tables import archive_people, habits
from sublet.booking.model.run_time import Run
from sublet.booking.model.timeline import micros
from sublet.kernel.db.sql import Sql, bind, plain

H, P = habits.c, archive_people.c
GET = select(H.runs).where(H.who == bind("of_who"), H.label == bind("of_label"))
OF = (
    select(H.runs)
    .join(archive_people, P.who == H.who)
    .where(P.person == bind("of_person"), H.label == bind("of_label"))
)
ADD = insert(habits)
SET = (
    update(habits)
    .where(H.who == bind("of_who"), H.label == bind("of_label"))
    .values(runs=bind("new_runs"), at=bind("new_at"))
)
FORGET = delete(habits).where(H.at < bind("before"))


class HabitStore:
    """Habits, as one transaction reads and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in the transaction of `sql`."""
        self._sql = sql

    def add(self, who: str, label: str, run: Run, now: datetime) -> None:
        """Add a run; only the newest runs are kept."""
        alike = {"of_who": who, "of_label": plain(label)}
        row = self._sql.row(GET, alike)
        where = [run.platform, run.queue, run.size, round(run.limit)]
        newest = [round(run.wall, 1), round(run.cores, 2), run.peak_memory, *where]
        runs = [*(json.loads(row[0]) if row else []), newest]
        text = json.dumps(runs[-KEPT:])
        if row is None:
            self._sql.change(ADD, {"who": who, "label": plain(label), "runs": text, "at": micros(now)})
        else:
            self._sql.change(SET, {**alike, "new_runs": text, "new_at": micros(now)})

    def of(self, person: str, label: str) -> list[Run]:
        """Return a person's newest runs of a program, oldest first."""
        row = self._sql.row(OF, {"of_person": plain(person), "of_label": plain(label)})
        return [Run(*each) for each in json.loads(row[0])] if row else []

    def erase(self, who: str) -> int:
        """Remove all of a person's habits; return how many."""
        return self._sql.modify(delete(habits).where(H.who == who))

    def forget(self, before: datetime) -> int:
        """Remove the habits of programs that haven't run since then; return how many."""
        return self._sql.change(FORGET, {"before": micros(before)})
