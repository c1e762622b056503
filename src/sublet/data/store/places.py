"""Places of systems, and people's scratch directories in them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.data.model.places import DeclaredPlace, PlaceKind, ScratchUse
from sublet.data.store.tables import places, scratches
from sublet.kernel.db.sql import Row, Sql, bind, plain

P, S = places.c, scratches.c
ALL = select(P.name, P.platform, P.kind, P.path, P.target, P.writable, P.keep, P.apps, P.note, P.created, P.by, P.quota)
OF = ALL.where(P.platform == bind("of_platform")).order_by(P.name)
EVERY = ALL.order_by(P.platform, P.name)
ADD = insert(places)
REMOVE = delete(places).where(P.platform == bind("of_platform"), P.name == bind("of_name"))
USES = select(S.platform, S.place, S.person, S.path, S.until)
THEIRS = USES.where(S.person == bind("of_person"))
OVER = USES.where(S.until <= bind("now"))
ADD_USE = insert(scratches)
_ONE = (
    *(S.platform == bind("of_platform"), S.place == bind("of_place")),
    *(S.person == bind("of_person"), S.path == bind("of_path")),
)
FORGET = delete(scratches).where(*_ONE)
KEEP = update(scratches).where(*_ONE).values(until=bind("new"))
END_PLACE = (
    update(scratches).where(S.platform == bind("of_platform"), S.place == bind("of_place")).values(until=bind("new"))
)
END_ALL = update(scratches).where(S.person == bind("of_person")).values(until=bind("new"))


class PlaceStore:
    """Places, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def put(self, new: DeclaredPlace) -> None:
        """Declare a place, replacing one of the same name."""
        self.remove(new.platform, new.name)
        row = {
            "name": plain(new.name),
            "platform": plain(new.platform),
            "kind": new.kind.value,
            "path": plain(new.path),
            "target": plain(new.target),
            "writable": new.writable,
            "keep": round(new.keep.total_seconds()),
            "apps": plain("\n".join(new.apps)),
            "note": plain(new.note),
            "created": micros(new.created),
            "by": plain(new.by),
            "quota": new.quota,
        }
        self._sql.change(ADD, row)

    def list(self, platform: str | None = None) -> list[DeclaredPlace]:
        """List the places of a platform, or of all platforms."""
        if platform is None:
            return [_read(row) for row in self._sql.rows(EVERY, {})]
        return [_read(row) for row in self._sql.rows(OF, {"of_platform": plain(platform)})]

    def remove(self, platform: str, name: str) -> bool:
        """Remove a place; return whether there was one."""
        return self._sql.change(REMOVE, {"of_platform": plain(platform), "of_name": plain(name)}) > 0

    def list_scratch(self, person: str) -> Sequence[ScratchUse]:
        """List a person's scratch directories."""
        return [_read_use(row) for row in self._sql.rows(THEIRS, {"of_person": plain(person)})]

    def list_expired(self, now: datetime) -> Sequence[ScratchUse]:
        """List the scratch directories whose retention time is over."""
        return [_read_use(row) for row in self._sql.rows(OVER, {"now": micros(now)})]

    def keep(self, use: ScratchUse) -> None:
        """Record a scratch directory and until when it is kept."""
        if not self._sql.change(KEEP, {**_key(use), "new": micros(use.until)}):
            row = {name.removeprefix("of_"): value for name, value in _key(use).items()}
            self._sql.change(ADD_USE, {**row, "until": micros(use.until)})

    def forget(self, use: ScratchUse) -> None:
        """Forget a scratch directory that was removed."""
        self._sql.change(FORGET, _key(use))

    def end_scratch(self, platform: str, place: str, now: datetime) -> None:
        """Expire all scratch of a place that was removed."""
        self._sql.change(END_PLACE, {"of_platform": plain(platform), "of_place": plain(place), "new": micros(now)})

    def end_all(self, person: str, now: datetime) -> None:
        """Expire all scratch of a person who was removed."""
        self._sql.change(END_ALL, {"of_person": plain(person), "new": micros(now)})


def _key(use: ScratchUse) -> dict[str, str]:
    names = ("platform", "place", "person", "path")
    return {f"of_{name}": plain(getattr(use, name)) for name in names}


def _read(row: Row) -> DeclaredPlace:
    name, platform, kind, path, target, writable, keep, apps, note, created, by, quota = row
    return DeclaredPlace(
        name,
        platform,
        PlaceKind(kind),
        path,
        target,
        bool(writable),
        timedelta(seconds=keep),
        tuple(apps.splitlines()),
        note,
        moment(created),
        by,
        quota,
    )


def _read_use(row: Row) -> ScratchUse:
    platform, place, person, path, until = row
    return ScratchUse(platform, place, person, path, moment(until))
