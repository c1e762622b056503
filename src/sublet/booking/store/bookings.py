"""Bookings. Calendars live in memory, and are checked against the version of one locked row per platform."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ClauseElement

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import bookings, calendars
from sublet.kernel.db.sql import Sql, bind
from sublet.kernel.errors import NotFound

KEPT = 512  # versions for which a released key is remembered, so that others can catch up without a reload
OTHERS = "others"  # the key of what can't be booked
SWEEP = 128  # versions between two sweeps of old released keys

_platform = calendars.c.platform == bind("platform")
LOOK = select(calendars.c.version, calendars.c.floor).where(_platform)
LOCK = LOOK.with_for_update()
DEFINED = select(calendars.c.nodes, calendars.c.pools).where(_platform)
BEGIN = insert(calendars)
REDEFINE = (
    update(calendars)
    .where(_platform)
    .values(
        nodes=bind("nodes"),
        pools=bind("pools"),
        floor=bind("new_version"),
        version=bind("new_version"),
    )
)
ADVANCE = update(calendars).where(_platform).values(version=bind("new_version"))
RAISE = update(calendars).where(_platform).values(floor=bind("new_floor"))

_here = bookings.c.platform == bind("platform")
ALL = select(bookings.c.key, bookings.c.takes).where(_here, bookings.c.takes.is_not(None))
NEWER = select(bookings.c.key, bookings.c.takes).where(_here, bookings.c.version > bind("seen"))
FORGET = delete(bookings).where(
    _here, bookings.c.version > bind("above"), bookings.c.version <= bind("upto"), bookings.c.takes.is_(None)
)


def _record(dialect: type[sqlite.Insert] | type[postgresql.Insert]) -> ClauseElement:
    statement = dialect(bookings)
    new = {"version": statement.excluded.version, "takes": statement.excluded.takes}
    return statement.on_conflict_do_update(index_elements=["platform", "key"], set_=new)


RECORD = {"sqlite": _record(sqlite.Insert), "postgresql": _record(postgresql.Insert)}


@dataclass
class Held:
    """One platform's calendar in memory, and its version in the database."""

    calendar: Calendar
    version: int  # of the row that the calendar agrees with
    floor: int
    changed: dict[str, None] = field(default_factory=dict)  # keys whose takes are not in the database yet


Memory = dict[str, Held]


class Books:
    """The bookings of every platform, as one transaction sees and changes them."""

    def __init__(self, sql: Sql, memory: Memory, locking: bool) -> None:
        """Use what earlier transactions left in `memory`; with `locking`, nobody else changes what this one saw."""
        self._sql = sql
        self._memory = memory
        self._look = LOCK if locking else LOOK
        self._seen: set[str] = set()
        self._undo: list[Callable[[], object]] = []

    def define(
        self, platform: str, nodes: Iterable[Node], pools: Mapping[str, int], taken: Sequence[Take] = ()
    ) -> None:
        """Define what a platform has, and what can't be booked; bookings stay, also on nodes that are gone."""
        self._describe(platform, nodes, pools)
        held = self._hold_calendar(platform)
        if held.calendar.takes(OTHERS) != tuple(taken):
            self._changing(held, OTHERS)
            held.calendar.release(OTHERS)
            held.calendar.put(OTHERS, taken)

    def _describe(self, platform: str, nodes: Iterable[Node], pools: Mapping[str, int]) -> None:
        described = {
            "nodes": json.dumps([[node.name, node.cores, node.memory, node.gpus, node.disk] for node in nodes]),
            "pools": json.dumps(dict(pools), sort_keys=True),
        }
        known = self._sql.row(DEFINED, {"platform": platform})
        if known is None:
            self._undo.append(lambda: self._memory.pop(platform, None))
            self._sql.change(BEGIN, {"platform": platform, "version": 0, "floor": 0, **described})
        elif known != (described["nodes"], described["pools"]):
            held = self._hold_calendar(platform)
            version = self._record(platform, held)
            self._sql.change(FORGET, {"platform": platform, "above": -1, "upto": version})
            self._sql.change(REDEFINE, {"platform": platform, "new_version": version, **described})
            del self._memory[platform]  # it is reloaded when next needed
            self._undo.append(lambda: self._memory.update({platform: held}))

    def calendar(self, platform: str) -> Calendar:
        """Return the platform's calendar, which nobody else changes during a write. Change it only by these methods."""
        return self._hold_calendar(platform).calendar

    def take(self, platform: str, key: str, takes: Iterable[Take]) -> None:
        """Book all takes under a key, or none."""
        held = self._hold_calendar(platform)
        self._changing(held, key)
        held.calendar.take(key, takes)

    def release(self, platform: str, key: str) -> tuple[Take, ...]:
        """Release what is booked under a key, and return it."""
        held = self._hold_calendar(platform)
        if not held.calendar.takes(key):
            return ()
        self._changing(held, key)
        return held.calendar.release(key)

    def keep(self, platform: str, key: str, takes: Iterable[Take]) -> None:
        """Book again what was just released, or less of it; unchecked, because a platform may have shrunk."""
        held = self._hold_calendar(platform)
        self._changing(held, key)
        held.calendar.put(key, takes)

    def extend(self, platform: str, key: str, until: datetime) -> tuple[Take, ...]:
        """Move the end of what is booked under a key, and return what is booked now."""
        held = self._hold_calendar(platform)
        self._changing(held, key)
        return held.calendar.extend(key, until)

    def settle(self) -> None:
        """Keep the changes of one unit of work."""
        self._undo.clear()

    def revert(self) -> None:
        """Undo the changes of one unit of work in memory; the database undoes its own part."""
        while self._undo:
            self._undo.pop()()

    def flush(self) -> None:
        """Write all changes, once for all units of work in a transaction."""
        for platform in self._seen:
            held = self._memory.get(platform)
            if held is not None and held.changed:
                held.version = self._record(platform, held)
                held.changed.clear()
                self._sql.change(ADVANCE, {"platform": platform, "new_version": held.version})
                if held.version % SWEEP == 0:
                    self._sweep(platform, held)

    def _hold_calendar(self, platform: str) -> Held:
        """Return the calendar in memory, brought up to date with the database once in a transaction."""
        held = self._memory.get(platform)
        if held is not None and platform in self._seen:
            return held
        row = self._sql.row(self._look, {"platform": platform})
        if row is None:
            raise NotFound(noun="platform", name=platform)
        version, floor = row
        if held is None or held.version < floor:
            held = self._memory[platform] = Held(self._load(platform), version, floor)
        elif held.version < version:
            for key, takes in self._sql.rows(NEWER, {"platform": platform, "seen": held.version}):
                held.calendar.release(key)
                if takes is not None:
                    held.calendar.put(key, read_takes(takes))
            held.version, held.floor = version, floor
        self._seen.add(platform)
        return held

    def _load(self, platform: str) -> Calendar:
        row = self._sql.row(DEFINED, {"platform": platform})
        assert row is not None  # noqa: S101 - its version was read just before, in the same transaction
        calendar = Calendar([Node(*node) for node in json.loads(row[0])], json.loads(row[1]))
        for key, takes in self._sql.rows(ALL, {"platform": platform}):
            calendar.put(key, read_takes(takes))
        return calendar

    def _changing(self, held: Held, key: str) -> None:
        """Remember the takes of a key before they change, so that they can be restored."""
        before, known = held.calendar.takes(key), key in held.changed
        held.changed[key] = None

        def undo() -> None:
            held.calendar.release(key)
            if before:
                held.calendar.put(key, before)
            if not known:
                held.changed.pop(key, None)

        self._undo.append(undo)

    def _record(self, platform: str, held: Held) -> int:
        """Write the keys that have changed, and return their version."""
        version = held.version + 1
        takes = ((key, held.calendar.takes(key)) for key in held.changed)
        self._sql.change_many(
            RECORD[self._sql.dialect],
            [
                {"platform": platform, "key": key, "version": version, "takes": takes_text(taken) if taken else None}
                for key, taken in takes
            ],
        )
        return version

    def _sweep(self, platform: str, held: Held) -> None:
        """Forget keys that were released long ago; a process that hasn't looked since then reloads everything."""
        upto = held.version - KEPT
        if upto > held.floor:
            self._sql.change(FORGET, {"platform": platform, "above": held.floor, "upto": upto})
            self._sql.change(RAISE, {"platform": platform, "new_floor": upto})
            held.floor = upto


def takes_text(takes: Iterable[Take]) -> str:
    """Write takes as text, to store them."""
    return json.dumps(
        [[t.where, micros(t.start), micros(t.end), *_amounts(t)] for t in takes],
        separators=(",", ":"),
    )


def _amounts(take: Take) -> list[int]:
    """Return the amounts of a take; disk, which few ask for, is the last and may be left out."""
    amounts = [take.cores, take.memory, take.gpus, take.size, int(take.pool)]
    return [*amounts, take.disk] if take.disk else amounts


def read_takes(text: str) -> tuple[Take, ...]:
    """Read takes from their stored text."""
    return tuple(
        Take(where, moment(start), moment(end), cores, memory, gpus, size, bool(pool), *disk)
        for where, start, end, cores, memory, gpus, size, pool, *disk in json.loads(text)
    )
