"""Draining of leases and nodes: they take no new jobs, running jobs finish, then each node is given back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from sublet.annexes.annexes import Annexes
from sublet.annexes.leases import Leases
from sublet.annexes.model.annex import DRAINING, Annex, Lease, Pilot
from sublet.annexes.shrinking import FIRST, GIVEN_BACK
from sublet.booking.model.events import EventKind
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NoLease, NotFound, PlatformRefused, SubletError
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

EVERY = timedelta(seconds=2)  # between checks for nodes that are drained and not yet given back
NEVER = datetime.max.replace(tzinfo=UTC)
AGAIN = timedelta(seconds=30)  # after a failed attempt to give one back


@dataclass
class AnnexDrains:
    """Drains leases or nodes, undoes that, and gives drained nodes back to their system."""

    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    leases: Leases
    annexes: Annexes

    _drains_looked: datetime | None = None
    _not_before: dict[tuple[str, int], datetime] = field(default_factory=dict)  # lease, node → time of the next attempt

    async def drain_annex(self, name: str, nodes: Sequence[str], person: Person) -> tuple[Annex, Sequence[Lease]]:
        """Drain leases, or some nodes of a lease: they take no new jobs, and each node ends when its jobs are done."""
        return await self._change_drains(name, nodes, person, is_wanted=True)

    async def undrain_annex(self, name: str, nodes: Sequence[str], person: Person) -> tuple[Annex, Sequence[Lease]]:
        """Let leases or nodes that are draining, and haven't ended yet, take jobs again."""
        return await self._change_drains(name, nodes, person, is_wanted=False)

    async def _change_drains(
        self, name: str, nodes: Sequence[str], person: Person, *, is_wanted: bool
    ) -> tuple[Annex, Sequence[Lease]]:
        annex, leases = await self.annexes.leases(name, person)
        now = self.now()

        def change(tx: Tx) -> list[Lease]:
            up = {lease.id: _find_up(tx, lease) for lease in leases if lease.ended is None}
            running = [lease for lease in leases if up.get(lease.id)]
            _check_running(name, annex, running, nodes)
            for lease in running:
                chosen = choose_nodes(f"{annex.name}#{lease.number}", up[lease.id], nodes)
                if is_wanted:
                    _check_first(f"{annex.name}#{lease.number}", up[lease.id], chosen)
                what = ("node" if nodes else "lease") if is_wanted else ""
                for pilot in chosen:
                    tx.pilots.learn(replace(pilot, facts={**pilot.facts, DRAINING: what}))
                words = ", ".join(str(pilot.number) for pilot in chosen) if nodes else "all nodes"
                kind = EventKind.LEASE_DRAINING if is_wanted else EventKind.LEASE_UNDRAINED
                tx.events.add(now, lease.id, person.name, kind, words)
            return running

        changed = await self.store.write(change)
        await self.signals.announce()
        return annex, changed

    async def look_after(self, now: datetime) -> None:
        """Give drained nodes back, at intervals, also after the clock was set back."""
        if self._drains_looked and abs(now - self._drains_looked) < EVERY:
            return
        self._drains_looked = now
        for lease, pilots in await self.store.read(_find_drained):
            due = [pilot for pilot in pilots if self._is_due((lease.id, pilot.number), now)]
            if due:
                self._not_before |= {(lease.id, node.number): now + AGAIN for node in due}
                await self._give_back_drained(lease, due)

    def _is_due(self, node: tuple[str, int], now: datetime) -> bool:
        until = self._not_before.get(node, now)
        return until != NEVER and not until - AGAIN <= now < until

    async def _give_back_drained(self, lease: Lease, pilots: Sequence[Pilot]) -> None:
        session = await self.leases.session_of(lease)
        if session is None or session.cancel_by:
            return
        numbers = [pilot.number for pilot in pilots]
        try:
            await self.platforms.of(session).give_back(session.job, [pilot.node for pilot in pilots])
        except PlatformRefused as error:
            log.info("lease.not-shrunk", lease=lease.id, nodes=numbers, why=error.message)
            self._not_before |= {(lease.id, number): NEVER for number in numbers}
            return
        except SubletError as error:
            log.info("lease.not-shrunk-yet", lease=lease.id, nodes=numbers, why=error.message)
            return
        now = self.now()

        def give(tx: Tx) -> None:
            annex = tx.annexes.get(lease.annex)
            for number in numbers:
                tx.pilots.explain(lease.id, number, GIVEN_BACK)
            without = f"without {', '.join(map(str, numbers))}"
            tx.events.add(now, lease.id, annex.person if annex else "", EventKind.LEASE_SHRUNK, without)

        await self.store.write(give)


def choose_nodes(lease: str, up: Sequence[Pilot], words: Sequence[str]) -> list[Pilot]:
    """Return the nodes named by number or by name; all nodes if none is named."""
    if not words:
        return list(up)
    chosen = []
    for word in dict.fromkeys(words):
        matches = [node for node in up if word in (str(node.number), node.node, node.node.partition(".")[0])]
        if not matches:
            raise NotFound(f"{lease} has no node {word} that is up.", hint=f"`sublet annex status {lease}` lists them.")
        chosen.append(matches[0])
    return chosen


def _check_running(name: str, annex: Annex, running: Sequence[Lease], nodes: Sequence[str]) -> None:
    if not running:
        raise NoLease(name=name, wanted="runs", hint=f"`sublet annex cancel {name}` takes back one that waits.")
    if nodes and len(running) > 1:
        names = ", ".join(f"{annex.name}#{lease.number}" for lease in running)
        raise BadRequest(f"{name} has several leases.", hint=f"Say of which the nodes are: {names}")


def _check_first(lease: str, up: Sequence[Pilot], chosen: Collection[Pilot]) -> None:
    """Raise BadRequest if the first node would be drained while others stay: it can't end before them."""
    numbers = {pilot.number for pilot in chosen}
    others = [node for node in up if node.number not in numbers and not node.is_draining]
    if FIRST in numbers and others:
        hint = "Drain another one, or the whole lease."
        raise BadRequest(f"Node {FIRST} of {lease} carries the others.", hint=hint)


def _find_up(tx: Tx, lease: Lease) -> list[Pilot]:
    return [pilot for pilot in tx.pilots.list(lease.id) if pilot.ended is None]


def _find_drained(tx: Tx) -> list[tuple[Lease, list[Pilot]]]:
    """Find drained nodes, except the first, of leases that still have other nodes."""
    by_lease = []
    for lease in tx.leases.live():
        pilots = tx.pilots.list(lease.id)
        drained = [pilot for pilot in pilots if pilot.ended and pilot.facts.get(DRAINING) and pilot.why != GIVEN_BACK]
        if drained and any(pilot.ended is None for pilot in pilots):
            by_lease.append((lease, [node for node in drained if node.number != FIRST]))
    return by_lease
