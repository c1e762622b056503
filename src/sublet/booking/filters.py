"""Filters of a list of sessions that name what doesn't exist: an empty list would hide a typing error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sublet.apps.model.app import VersionState, read_ref
from sublet.booking.documents.kinds import KINDS
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import NotFound
from sublet.kernel.plugins import plugins
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass(frozen=True, slots=True)
class FilterCheck:
    """Looks at the filters of a list that is empty: whose sessions it is about (None: everyone's), for whom."""

    store: Store
    platforms: KnownPlatforms
    person: Person
    owner: str | None

    async def check(self, of: str, filters: Mapping[str, Any]) -> None:
        """Raise NotFound if a filter names what nobody knows, and what none of these sessions was ever about."""
        await self.store.read(lambda tx: self._check(tx, of, filters))

    def _check(self, tx: Tx, of: str, filters: Mapping[str, Any]) -> None:
        if of and self.owner is not None and not self._is_known(tx, self.owner):
            raise NotFound(noun="person", name=of, hint="`sublet ps --everyone` lists the sessions of all people.")
        checks = {
            "platform": self._check_platform,
            "kind": self._check_kind,
            "app": self._check_app,
            "annex": self._check_annex,
        }
        for name, check in checks.items():
            if filters.get(name) and not self._has_any(tx, **{name: filters[name]}):
                check(tx, filters[name])

    def _has_any(self, tx: Tx, **narrowed: Any) -> bool:
        return bool(tx.sessions.list(person=self.owner, limit=1, **narrowed).items)

    def _is_known(self, tx: Tx, owner: str) -> bool:
        return bool(tx.people.get(owner) or tx.tokens.list(owner) or self._has_any(tx))

    def _check_platform(self, _: Tx, name: str) -> None:
        if name not in self.platforms.broken:
            self.platforms.get(name)  # says which there are

    def _check_kind(self, _: Tx, name: str) -> None:
        kinds = sorted({*KINDS["executable"], *(point.name for point in plugins("sublet.kinds"))})
        if name not in kinds:
            raise NotFound(noun="kind", name=name, hint=f"There are: {', '.join(kinds)}.")

    def _check_app(self, tx: Tx, ref: str) -> None:
        name, number = read_ref(ref)
        app = tx.apps.get(name)
        versions = [
            version
            for version in tx.apps.versions(name)
            if self.person.operator
            or self.person.reviewer
            or version.state is VersionState.APPROVED
            or self.person.name in (version.proposed_by, app and app.person)
        ]
        if not versions:
            raise NotFound(noun="app", name=name, hint="`sublet app list` lists those that you can run.")
        if number is not None and number not in [version.number for version in versions]:
            raise NotFound(noun="version", name=ref, hint=f"`sublet app show {name}` lists them.")

    def _check_annex(self, tx: Tx, name: str) -> None:
        named = [annex for annex in tx.annexes.list() if annex.name == name]
        if not any(self.owner is None or self.owner in (annex.person, *annex.guests) for annex in named):
            raise NotFound(noun="annex", name=name, hint="`sublet annex status` lists yours.")
