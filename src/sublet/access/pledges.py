"""Pledges: the size of each part of a platform, how much of it is in use, and who may use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.access.model.access import AccessRule, AccessTarget, Decision
from sublet.access.rules import AccessRules
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.pledge import OPEN, find_drawn, is_pledge, order_names, pool_of, sizes_in
from sublet.booking.model.pledged import Pledged
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.platforms import Platforms
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NotFound, SubletError
from sublet.people.model.person import Person
from sublet.platforms.pledge_settings import PledgeSettings
from sublet.store.store import Store
from sublet.store.tx import Tx

MOMENT = timedelta(seconds=1)
NOTHING_PLEDGED = Pledged()


@dataclass(frozen=True, slots=True)
class PledgeState:
    """One part of a platform: its size, how much of it is in use, and whether a person may use it."""

    platform: str
    name: str
    title: str
    cores: int
    taken: int  # booked or held now; a session under several pledges counts by their sizes
    free: int  # what someone who uses only this pledge could have now
    decision: Decision
    rules: tuple[AccessRule, ...] = ()  # the rules about it, for operators
    pledged: Pledged = NOTHING_PLEDGED
    when: str = ""  # when it is in force; empty: always
    is_added: bool = False  # by an operator, not in the settings


@dataclass
class Pledges:
    """Lists the parts of platforms."""

    store: Store
    now: Clock
    platforms: KnownPlatforms
    usable_platforms: Platforms
    rules: AccessRules

    async def pledges(self, person: Person, name: str = "") -> list[PledgeState]:
        """List the parts of the platforms that a person may use, or those with this name."""
        states: list[PledgeState] = []
        for platform in await self.usable_platforms.usable(person):
            if self.platforms.pledges_of(platform):
                states += await self.parts_of(platform, person)
        kept = [state for state in states if name in ("", state.name)]
        if name and not kept:
            there = ", ".join(order_names(state.name for state in states)) or "none"
            raise NotFound(noun="pledge", name=name, hint=f"There are: {there}.")
        return kept

    async def parts_of(self, platform: str, person: Person) -> list[PledgeState]:
        """List the parts of one platform; empty if it has no pledges, or can't be surveyed now."""
        settings, now = self.platforms.pledges.settings_of(platform), self.now()
        try:
            await self.platforms.survey_soon(platform)
        except SubletError:
            return []

        def count(tx: Tx) -> list[PledgeState]:
            return [self._cap_state(tx, platform, name, each, person) for name, each in settings.items()]

        def work(tx: Tx) -> list[PledgeState]:
            calendar = tx.books.calendar(platform)
            sizes, taken = sizes_in(calendar.pools), _sum_booked(calendar, now)
            free = sum(shape.cores for shape in calendar.free(now, now + MOMENT).values()) if sizes else 0
            return [
                PledgeState(
                    platform,
                    name,
                    settings[name].title if name in settings else "",
                    sizes[name],
                    taken[name],
                    min(calendar.room(pool_of([name]), now, now + MOMENT).cores, free),
                    self.rules.stands(tx, person.name, target).decision,
                    _about(tx.rules.list(target[0]), target) if person.operator else (),
                    settings[name].pledged if name in settings else NOTHING_PLEDGED,
                    settings[name].spoken if name in settings else "",
                    self.platforms.pledges.is_added(platform, name),
                )
                for name in order_names(sizes)
                for target in [self._target_of(platform, name)]
            ]

        if self.platforms.get(platform).terms != "booked":
            return await self.store.read(count)
        return await self.store.write(work)

    def _cap_state(self, tx: Tx, platform: str, name: str, pledge: PledgeSettings, person: Person) -> PledgeState:
        """Return the state of a pledge that is a cap."""
        target, taken = ("pledge", name), tx.uses.count_drawn(platform, name)["cores"]
        decision = self.rules.stands(tx, person.name, target).decision
        rules = _about(tx.rules.list("pledge"), target) if person.operator else ()
        size = pledge.cores or 0
        return PledgeState(
            *(platform, name, pledge.title, size, taken, max(size - taken, 0), decision, rules),
            *(pledge.pledged, pledge.spoken, self.platforms.pledges.is_added(platform, name)),
        )

    def _target_of(self, platform: str, name: str) -> AccessTarget:
        """Return the target of the rules about a part: for open capacity that is the platform itself."""
        return (self.platforms.noun_of(platform), platform) if name == OPEN else ("pledge", name)


def _sum_booked(calendar: Calendar, now: datetime) -> Mapping[str, int]:
    busy = calendar.busy(now, now + MOMENT)
    booked = {pool: max((take.size for take in steps), default=0) for pool, steps in busy.items() if is_pledge(pool)}
    return find_drawn(booked, sizes_in(calendar.pools))


def _about(rules: Sequence[AccessRule], target: AccessTarget) -> tuple[AccessRule, ...]:
    return tuple(rule for rule in rules if rule.about(*target))
