"""The complete resource request of a lease before it is submitted: filled in, and checked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes
from sublet.annexes.model.annex import Details, check_name
from sublet.annexes.model.leasing import YOU, LeasePlan, RequestRow, Sources, plan, system_of
from sublet.annexes.pilots.access_point import usual_lease
from sublet.annexes.templates import Templates
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.systems import directory_of, find_system
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest
from sublet.kernel.settings import Settings
from sublet.kernel.texts import describe_duration
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx
from sublet.systems.model.pilot_config import Additions
from sublet.systems.model.system import System
from sublet.systems.own import Systems

WHOSE = {"own": "your own", "machine": "this machine's", "any": "this machine's, else your own"}


@dataclass(frozen=True, slots=True)
class WantedLease:
    """The details that a person gave for a lease, and where the others come from."""

    details: Details
    template: str = ""
    like: str = ""  # another annex, or one of its leases, whose details to use


@dataclass
class LeasePlans:
    """Plans what a lease would request, and checks it."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    authority: Authority
    templates: Templates
    access_points: AccessPoints
    annexes: Annexes
    changes: PlatformChanges

    async def plan_lease(self, name: str, wanted: WantedLease, person: Person) -> tuple[LeasePlan, int]:
        """Return the complete resource request, checked against its system, and the number of the lease."""
        self.authority.require_owner(person)
        check_name(name)
        sources, number = await self._sources(name, wanted, person)
        chosen = system_of(sources)
        if not chosen:
            chosen = await self._only_system()
            sources = [*sources, ("it is the only one", Details(system=chosen))]
        await self.changes.refresh()  # the system's file may have been edited since
        system = await asyncio.to_thread(self._any_system, chosen)
        live = await self.store.read(lambda tx: [lease for lease in tx.leases.live() if lease.details.system == chosen])
        made = plan(sources, system, today=self.now().date(), jobs=len(live) + 1)
        rows = [self._check_own(row) if row.field == "system" else row for row in made.rows]
        return replace(made, rows=(*rows, *self._list_added_rows(chosen), *await self._point_rows())), number

    def _any_system(self, name: str) -> System:
        """Return a system on which nodes can be leased, or could be if it were added to the person's own."""
        if name in self.platforms.by_name:
            return find_system(self.settings, name)
        return Systems(str(directory_of(self.settings))).find(name)

    def _check_own(self, row: RequestRow) -> RequestRow:
        """Check that the system is one of the person's own."""
        if row.value in self.platforms.by_name:
            return row
        if broken := self.platforms.broken.get(f"system {row.value}"):
            return replace(row, state="error", message=broken)
        message = f"{row.value} is in the catalogue, but not yet yours."
        return replace(row, state="error", message=message, nearest=f"sublet system add {row.value} --user NAME")

    def _list_added_rows(self, system: str) -> list[RequestRow]:
        """Return rows for what the system's file adds to every lease: sbatch options, and pilot configuration."""
        platform = self.platforms.by_name.get(system)
        additions = platform.additions if platform else Additions()
        added = {"sbatch options": " ".join(additions.options), "pilot config": "; ".join(additions.lines)}
        return [
            RequestRow(name, text, "the system's file", "the system's file") for name, text in added.items() if text
        ]

    async def _point_rows(self) -> list[RequestRow]:
        """Return rows for what the access point decides: where jobs wait, and how long they stay with a lost node."""
        state = await self.access_points.access_point_state()
        if state.stage in ("absent", "fetching"):
            nearest = "sublet annex setup --fetch" if state.url else "sublet annex setup"
            message = state.failure.message if state.failure else "There is no HTCondor on this machine."
            return [RequestRow("access point", "none", "", "sublet annex setup", "error", "", message, nearest)]
        use, lease = self.settings.annex.use, self.settings.annex.job_lease
        whose, why = (state.kind or use, "what is here") if use == "any" else (use, "settings")
        length = describe_duration(lease or state.lease or usual_lease())
        return [
            RequestRow("access point", WHOSE.get(whose, ""), why, "[annex] use"),
            RequestRow("job lease", length, "settings" if lease else "this sort of machine", "[annex] job_lease"),
        ]

    async def _sources(self, name: str, wanted: WantedLease, person: Person) -> tuple[Sources, int]:
        """Return the sources of details, by precedence: the person, the lease to copy, the template, the last lease."""
        sources = [(YOU, wanted.details)]
        if wanted.like:
            annex, lease = await self.annexes.last_lease(wanted.like, person)
            sources.append((f"{annex.name}#{lease.number}", lease.details))
        if wanted.template:
            sources.append(
                (f"template {wanted.template}", (await self.templates.template(wanted.template, person)).details)
            )
        last, number = await self.store.read(lambda tx: _last(tx, name, person))
        return [*sources, *last], number

    async def _only_system(self) -> str:
        """Return the only system with queues; raise BadRequest if there isn't exactly one."""
        await self.changes.refresh()
        names = [name for name, platform in self.platforms.by_name.items() if platform.has_queues]
        if len(names) != 1:
            known = ", ".join(names) or "none yet: `sublet system add NAME` makes one yours"
            broken = "".join(
                f" {name}: {why}" for name, why in self.platforms.broken.items() if name.startswith("system ")
            )
            raise BadRequest("Nothing says on which system.", hint=f"Say --system NAME; there are: {known}.{broken}")
        return names[0]


def _last(tx: Tx, name: str, person: Person) -> tuple[list[tuple[str, Details]], int]:
    """Return the details of the last lease, of this annex or else of any, and the number of the next lease."""
    annex = tx.annexes.find_named(person.name, name)
    leases = tx.leases.list(annex.id) if annex else []
    last = leases[-1] if leases else tx.leases.latest(person.name)
    number = tx.leases.next_number(annex.id) if annex else 1
    of = tx.annexes.get(last.annex) if last else None
    if last is None or of is None:
        return [], number
    details = last.details if leases else replace(last.details, carry="")  # another annex's carry doesn't apply here
    return [(f"last time: {of.name}#{last.number}", details)], number
