"""The queue of a person's own access point: reads and marks jobs, with the names of their annexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from sublet.annexes.annexes import Annexes
from sublet.annexes.model.annex import Annex
from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.pilots import marking
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import OperatorsOnly
from sublet.people.model.person import Person
from sublet.platforms.htcondor.commands import ids
from sublet.platforms.htcondor.slots import to_config
from sublet.reach.local import LocalReach
from sublet.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Listed:
    """Jobs, and the names of annexes by id."""

    jobs: Sequence[QueuedJob]
    names: Mapping[str, str]
    dags: Sequence[str] = ()  # the DAGs whose nodes these are, if whole DAGs were named


@dataclass
class JobQueue:
    """Reads and marks jobs in the queue."""

    now: Clock
    authority: Authority
    annexes: Annexes

    def find_or_add(self, tx: Tx, name: str, person: Person) -> Annex:
        """Return a person's annex of this name, creating it if it is new, since jobs may wait for its nodes."""
        annex = tx.annexes.find_named(person.name, name)
        if annex is None:
            annex = Annex(str(uuid4()), person.name, name, self.now())
            tx.annexes.add(annex)
        return annex

    async def marks_for(self, point: AccessPoint, annex: str) -> marking.Marks:
        """Return the attributes to set in jobs for an annex, by its id; an empty id means no annex."""
        if not annex:
            return marking.unmark(self.now())
        usual = await LocalReach("access point").run(to_config(point.tools, marking.LEASE_SETTING))
        lease = usual.get(marking.LEASE_SETTING, "")
        return marking.mark_for(annex, point.contact.owner, self.now(), point.lease, lease)

    async def edit(self, point: AccessPoint, wanted: Sequence[str], marks: marking.Marks) -> None:
        """Mark jobs; a cluster is marked as a whole, with the jobs that it has yet to create."""
        here, tools = LocalReach("access point"), point.tools
        jobs = [job for clause in ids(wanted) for job in await here.run(marking.to_terms(tools, clause))]
        factories = [
            factory for clause in ids(wanted) for factory in await here.run(marking.to_factory_terms(tools, clause))
        ]
        for edit in marking.plan_edits(wanted, jobs, factories, marks):
            for command in marking.to_apply(tools, edit):
                await here.run(command)

    async def describe(self, jobs: Sequence[QueuedJob], person: Person) -> Listed:
        """Return jobs with the names of their annexes."""
        return Listed(jobs, await self.names_of(person))

    async def names_of(self, person: Person) -> Mapping[str, str]:
        """Return the names of a person's annexes by id."""
        return {annex.id: annex.name for annex in await self.annexes.annexes(person)}

    def require_own(self, person: Person) -> None:
        """Require the owner of a personal service: raise PersonalOnly on a gateway, OperatorsOnly for guests."""
        self.authority.require_owner()
        if not person.operator:
            raise OperatorsOnly
