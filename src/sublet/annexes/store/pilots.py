"""Pilots in the database: which nodes of a lease have claimed their place, and what they reported since."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import insert, select, update

from sublet.annexes.model.annex import Pilot
from sublet.annexes.store.tables import pilots
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, moment_or_none, plain

P = pilots.c
COLUMNS = (P.lease, P.number, P.claimed, P.node, P.seen, P.ended, P.why, P.facts)
ADD = insert(pilots)
GET = select(*COLUMNS).where(P.lease == bind("of_lease"), P.number == bind("of_number"))
LIST = select(*COLUMNS).where(P.lease == bind("of_lease")).order_by(P.number)
SEE = update(pilots).where(P.lease == bind("of_lease"), P.number == bind("of_number")).values(seen=bind("s"))
LEARN = update(pilots).where(P.lease == bind("of_lease"), P.number == bind("of_number")).values(facts=bind("f"))
EXPLAIN = update(pilots).where(P.lease == bind("of_lease"), P.number == bind("of_number")).values(why=bind("w"))
END = (
    update(pilots)
    .where(P.lease == bind("of_lease"), P.number == bind("of_number"), P.ended.is_(None))
    .values(ended=bind("e"), why=bind("w"))
)


class PilotStore:
    """The pilots, in one transaction."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def claim(self, pilot: Pilot) -> bool:
        """Claim a node's place; return whether it was free."""
        if self.get(pilot.lease, pilot.number):
            return False
        self._sql.change(
            ADD,
            {
                "lease": pilot.lease,
                "number": pilot.number,
                "node": plain(pilot.node),
                "claimed": micros(pilot.claimed),
                "seen": micros(pilot.claimed),
                "ended": None,
                "why": "",
                "facts": plain(json.dumps(dict(pilot.facts))),
            },
        )
        return True

    def get(self, lease: str, number: int) -> Pilot | None:
        """Return one pilot of a lease."""
        return _pilot(self._sql.row(GET, {"of_lease": plain(lease), "of_number": number}))

    def list(self, lease: str) -> list[Pilot]:
        """List the pilots of a lease, by number."""
        return [pilot for pilot in map(_pilot, self._sql.rows(LIST, {"of_lease": plain(lease)})) if pilot]

    def see(self, lease: str, number: int, now: datetime) -> None:
        """Record that a pilot has reported."""
        self._sql.change(SEE, {"of_lease": lease, "of_number": number, "s": micros(now)})

    def learn(self, pilot: Pilot) -> None:
        """Save a pilot's facts."""
        values = {"of_lease": pilot.lease, "of_number": pilot.number, "f": plain(json.dumps(dict(pilot.facts)))}
        self._sql.change(LEARN, values)

    def explain(self, lease: str, number: int, why: str) -> None:
        """Replace the reason why a pilot ended."""
        self._sql.change(EXPLAIN, {"of_lease": lease, "of_number": number, "w": plain(why)})

    def end(self, lease: str, number: int, now: datetime, why: str) -> bool:
        """Mark a pilot as ended; return whether it hadn't ended before."""
        values = {"of_lease": lease, "of_number": number, "e": micros(now), "w": plain(why)}
        return self._sql.change(END, values) > 0


def _pilot(row: Row | None) -> Pilot | None:
    if row is None:
        return None
    lease, number, claimed, node, seen, ended, why, facts = row
    times = moment_or_none(seen), moment_or_none(ended)
    return Pilot(lease, number, moment(claimed), node, *times, why, json.loads(facts))
