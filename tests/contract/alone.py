"""What a use case is built on when it is built alone: settings, a store, a clock, and platforms that only play."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sublet.access.model.access import Limits
from sublet.access.quotas import RuledAccess
from sublet.access.rules import AccessRules, ChangedRules
from sublet.annexes.annexes import Annexes
from sublet.annexes.templates import Templates
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.signals import Signals
from sublet.kernel.authority import Authority
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.people.groups import Groups
from sublet.people.names import PeopleNames
from sublet.people.people import People
from sublet.people.standings import Standings
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.store import Store
from tests.clocks import StillClock
from tests.contract.services import OPERATOR
from tests.databases import put_database


@dataclass
class Ground:
    """The ground on which a use case stands; each is made of what its constructor names, and of nothing else."""

    settings: Settings
    store: Store
    now: StillClock
    platforms: KnownPlatforms
    authority: Authority

    @property
    def annexes(self) -> Annexes:
        """Annexes by name."""
        return Annexes(self.store, self.now, Signals(), self.authority)

    @property
    def templates(self) -> Templates:
        """Details of leases that are kept."""
        return Templates(self.store, self.now, self.authority)

    @property
    def groups(self) -> Groups:
        """Groups of people."""
        return Groups(self.store, self.now, self.authority)

    @property
    def people(self) -> People:
        """Who is known."""
        return People(self.settings, self.store, self.now, Standings(), self.authority, knows_people=True)

    @property
    def names(self) -> PeopleNames:
        """Whom an address means."""
        return PeopleNames(self.store, self.authority, knows_people=True)

    @property
    def quotas(self) -> RuledAccess:
        """Who may use how much."""
        throttle = Throttle(self.settings.throttle.limits)
        return RuledAccess(self.settings, self.store, self.now, self.platforms, throttle)

    @property
    def rules(self) -> AccessRules:
        """The access rules."""
        return AccessRules(self.settings, self.store, self.now, self.platforms, self.authority, self.quotas)

    async def allow(self, who: str = "*", noun: str = "system", name: str = "*", **limits: Any) -> ChangedRules:
        """Let people use something."""
        rule: dict[str, Any] = {"effect": "allow", "who": who, "noun": noun, "name": name}
        return await self.rules.add_rule(OPERATOR, **rule, limits=Limits(**limits))


@contextlib.contextmanager
def standing(home: Path, *, has_owner: bool = False, **settings: Any) -> Iterator[Ground]:
    """A ground of its own, of a gateway unless it has an owner; nothing is started on it."""
    put_database(home / "sublet.db")
    mode = "personal" if has_owner else "gateway"
    loaded, now = Settings.load(home, mode=mode, **settings), StillClock()
    store = Store.open(loaded.database_url)
    try:
        known = KnownPlatforms(store, now, loaded.answer_within, {"trial": MemoryPlatform(name="trial")})
        yield Ground(loaded, store, now, known, Authority(loaded, has_owner=has_owner))
    finally:
        store.close()
