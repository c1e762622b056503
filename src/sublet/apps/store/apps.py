"""Apps and their versions: added once, decided on, never changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, or_, select, update

from sublet.apps.model.app import App, Version, VersionState
from sublet.apps.store.tables import apps, versions
from sublet.booking.model.phases import ACTIVE, Phase
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import sessions
from sublet.kernel.db.sql import Row, Sql, bind, moment_or_none, plain
from sublet.people.store.tables import people

A, V = apps.c, versions.c
COLUMNS = (
    *(V.id, V.app, V.number, V.repository, V.branch, V.commit, V.tree, V.manifest, V.manifest_hash, V.image),
    *(V.digest, V.state, V.proposed, V.proposed_by, V.about, V.decided, V.decided_by, V.why),
)
VERSION = select(*COLUMNS)
ADD_APP, ADD = insert(apps), insert(versions)
APP = select(A.name, A.person, A.repository, A.created).where(A.name == bind("of_name"))
APPS = select(A.name, A.person, A.repository, A.created).order_by(A.name)
GET = VERSION.where(V.id == bind("of_id"))
OF_APP = VERSION.where(V.app == bind("of_app")).order_by(V.number.desc())
OPEN = select(func.count()).where(V.state == "proposed", V.proposed_by == bind("of_person"))
NEXT = select(func.coalesce(func.max(V.number), 0) + 1).where(V.app == bind("of_app"))
REVIEWERS = select(people.c.name).where(people.c.role.in_(["operator", "reviewer"]), people.c.blocked.is_(None))


class AppStore:
    """The apps, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, app: App) -> None:
        """Add an app."""
        row = {"name": app.name, "person": plain(app.person), "repository": plain(app.repository)}
        self._sql.change(ADD_APP, {**row, "created": micros(app.created)})

    def get(self, name: str) -> App | None:
        """Return an app by name."""
        row = self._sql.row(APP, {"of_name": plain(name)})
        return _app(row) if row else None

    def list(self) -> list[App]:
        """List all apps, by name."""
        return [_app(row) for row in self._sql.rows(APPS, {})]

    def next_number(self, app: str) -> int:
        """Return the number of an app's next version."""
        row = self._sql.row(NEXT, {"of_app": app})
        return int(row[0]) if row else 1

    def add_version(self, version: Version) -> None:
        """Add a version."""
        about = {name: getattr(version, name) for name in ("author", "written", "subject", "findings")}
        self._sql.change(
            ADD,
            {
                **{name: plain(getattr(version, name)) for name in TEXTS},
                "number": version.number,
                "manifest": json.dumps(version.manifest),
                "about": json.dumps(about),
                "state": version.state.value,
                "proposed": micros(version.proposed),
                "decided": None,
            },
        )

    def version(self, id: str) -> Version | None:
        """Return a version by id."""
        row = self._sql.row(GET, {"of_id": plain(id)})
        return _version(row) if row else None

    def versions(self, app: str) -> Sequence[Version]:
        """Return all versions of an app, newest first."""
        return [_version(row) for row in self._sql.rows(OF_APP, {"of_app": plain(app)})]

    def newest(self, app: str) -> Version | None:
        """Return the newest version of an app."""
        return next(iter(self.versions(app)), None)

    def decide(
        self, id: str, state: VersionState, when: Collection[VersionState], *, now: datetime, by: str, why: str
    ) -> bool:
        """Decide on a version; return False if its state doesn't allow that."""
        changed = update(versions).where(V.id == id, V.state.in_([one.value for one in when]))
        return bool(
            self._sql.modify(
                changed.values(state=state.value, decided=micros(now), decided_by=plain(by), why=plain(why))
            )
        )

    def count_open(self, person: str) -> int:
        """Count a person's undecided proposals."""
        return self._sql.number(OPEN, {"of_person": plain(person)})

    def sessions(self, ids: Collection[str]) -> Sequence[str]:
        """Return the active and offered sessions of these versions."""
        phases = [Phase.OFFERED.value, *(phase.value for phase in ACTIVE)]
        query = select(sessions.c.id).where(sessions.c.app.in_(list(ids)), sessions.c.phase.in_(phases))
        return [row[0] for row in self._sql.select(query)]

    def trees(self, since: datetime) -> set[str]:
        """Return the archives that are needed: of versions that can be run or decided on, or were decided on lately."""
        needed = or_(V.state.in_(["proposed", "approved"]), V.decided >= micros(since))
        return {row[0] for row in self._sql.select(select(V.tree).where(needed))}

    def reviewers(self) -> Sequence[str]:
        """Return the people who may decide on apps."""
        return [row[0] for row in self._sql.rows(REVIEWERS, {})]


TEXTS = (
    *("id", "app", "repository", "branch", "commit", "tree", "manifest_hash", "image", "digest", "proposed_by"),
    *("decided_by", "why"),
)


def _app(row: Row) -> App:
    return App(row[0], row[1], row[2], moment(row[3]))


def _version(row: Row) -> Version:
    names = [column.name for column in COLUMNS]
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    about = json.loads(values.pop("about"))
    about["findings"] = tuple(about["findings"])
    return Version(
        **values
        | {
            "manifest": json.loads(values["manifest"]),
            "state": VersionState(values["state"]),
            "proposed": moment(values["proposed"]),
            "decided": moment_or_none(values["decided"]),
        },
        **about,
    )
