"""Second factors: the sealed secret of an authenticator app, and which codes were used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Sql, bind, moment_or_none, plain
from sublet.people.store.tables import factors

F = factors.c
COLUMNS = (F.person, F.secret, F.created, F.confirmed, F.step, F.tries, F.tried, F.recovery)
ADD = insert(factors)
GET = select(*COLUMNS).where(F.person == bind("of"))
REMOVE = delete(factors).where(F.person == bind("of"))
CONFIRM = update(factors).where(F.person == bind("of")).values(confirmed=bind("now"), recovery=bind("hashes"))
USE = update(factors).where(F.person == bind("of"), F.step < bind("now_step"))
USE = USE.values(step=bind("now_step"), tries=0)
RECOVER = update(factors).where(F.person == bind("of"), F.recovery == bind("old"))
RECOVER = RECOVER.values(recovery=bind("new"), tries=0)
FORGET_TRIES = update(factors).where(F.person == bind("of"), F.tried <= bind("before"))
FORGET_TRIES = FORGET_TRIES.values(tries=0, tried=bind("now"))
TRY = update(factors).where(F.person == bind("of"), F.tries < bind("most")).values(tries=F.tries + 1)
SECRETS = select(F.person, F.secret)
SEAL = update(factors).where(F.person == bind("of"), F.secret == bind("old")).values(secret=bind("new"))


@dataclass(frozen=True, slots=True)
class Factor:
    """A person's second factor."""

    person: str
    secret: str  # sealed
    created: datetime
    confirmed: datetime | None = None  # None: not in effect yet
    step: int = 0  # the newest time step whose code was used
    tries: int = 0
    tried: datetime | None = None
    recovery: tuple[str, ...] = ()


class FactorStore:
    """The second factors, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def get(self, person: str) -> Factor | None:
        """Return a person's second factor, confirmed or not."""
        row = self._sql.row(GET, {"of": plain(person)})
        if row is None:
            return None
        name, secret, created, confirmed, step, tries, tried, recovery = row
        times = moment(created), moment_or_none(confirmed)
        return Factor(name, secret, *times, step, tries, moment(tried), tuple(recovery.split()))

    def on(self, person: str) -> bool:
        """Whether a person has a confirmed second factor."""
        factor = self.get(person)
        return factor is not None and factor.confirmed is not None

    def put(self, person: str, secret: str, now: datetime) -> None:
        """Store a new secret, replacing any other; it takes effect once confirmed."""
        self.remove(person)
        row = {"person": plain(person), "secret": secret, "created": micros(now), "tried": micros(now)}
        self._sql.change(ADD, row | {"confirmed": None, "step": 0, "tries": 0, "recovery": ""})

    def confirm(self, person: str, hashes: tuple[str, ...], now: datetime) -> None:
        """Turn it on, with these hashes of recovery codes."""
        self._sql.change(CONFIRM, {"of": plain(person), "now": micros(now), "hashes": " ".join(hashes)})

    def remove(self, person: str) -> bool:
        """Remove a person's second factor; return whether they had one."""
        return self._sql.change(REMOVE, {"of": plain(person)}) > 0

    def try_once(self, person: str, most: int, within: timedelta, now: datetime) -> bool:
        """Count an attempt before its code is checked; return whether it was within the limit."""
        times = {"now": micros(now), "before": micros(now - within)}
        self._sql.change(FORGET_TRIES, {"of": plain(person)} | times)
        return self._sql.change(TRY, {"of": plain(person), "most": most}) > 0

    def use(self, person: str, step: int) -> bool:
        """Use up the code of a time step and of earlier ones; return whether it was unused."""
        return self._sql.change(USE, {"of": plain(person), "now_step": step}) > 0

    def recover(self, factor: Factor, hash: str) -> bool:
        """Use up a recovery code; return whether it was valid."""
        left = [code for code in factor.recovery if code != hash]
        values = {"of": plain(factor.person), "old": " ".join(factor.recovery), "new": " ".join(left)}
        return len(left) < len(factor.recovery) and self._sql.change(RECOVER, values) > 0

    def secrets(self) -> dict[str, str]:
        """Return all sealed secrets, by person."""
        return dict(self._sql.rows(SECRETS, {}))

    def seal(self, person: str, old: str, new: str) -> bool:
        """Replace a sealed secret, unless it has changed meanwhile."""
        return self._sql.change(SEAL, {"of": plain(person), "old": old, "new": new}) > 0
