"""DAGs of HTCondor jobs: list, show and remove them, and tell them that their annex is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.job_queue import JobQueue
from sublet.annexes.model.dags import QueuedDag
from sublet.annexes.pilots import dags
from sublet.kernel.errors import BadRequest, NotFound
from sublet.people.model.person import Person
from sublet.platforms.htcondor.commands import ids, to_remove
from sublet.reach.local import LocalReach


@dataclass
class Dags:
    """A person's own DAGs at their own access point."""

    access_points: AccessPoints
    job_queue: JobQueue

    async def dags(self, person: Person) -> tuple[Sequence[QueuedDag], Mapping[str, str]]:
        """Return the DAGs in the queue, and the names of annexes by id."""
        self.job_queue.require_own(person)
        point = await self.access_points.access_point()
        return await LocalReach("access point").run(dags.to_dags(point.tools)), await self.job_queue.names_of(person)

    async def dag(self, id: str, person: Person) -> tuple[QueuedDag, Mapping[str, str]]:
        """Return a DAG, from the queue or from the history, and the names of annexes by id."""
        self.job_queue.require_own(person)
        point, here = await self.access_points.access_point(), LocalReach("access point")
        clause = ids([id])[0]
        matches = await here.run(dags.to_dags(point.tools, clause)) or await here.run(
            dags.to_remember(point.tools, clause)
        )
        if not matches:
            raise NotFound(noun="DAG", name=id, hint="`sublet dag list` lists your running DAGs.")
        return matches[0], await self.job_queue.names_of(person)

    async def remove_dag(self, id: str, person: Person) -> None:
        """Remove a DAG and its jobs. DAGMan then runs its FINAL node; removing the DAG again removes that too."""
        dag, _ = await self.dag(id, person)
        point = await self.access_points.access_point()
        which = f"DAGManJobId == {int(id)}" if dag.state == "removed" else ids([id])[0]
        await LocalReach("access point").run(to_remove(point.tools, which, f"{person.name} removed it"))

    async def end_provisioning(self, job: str, person: Person) -> tuple[QueuedDag, Mapping[str, str]]:
        """Tell a DAG that its provisioner is done: the nodes of its annex are up."""
        self.job_queue.require_own(person)
        point, here = await self.access_points.access_point(), LocalReach("access point")
        clause = ids([job])[0]
        manager = await here.run(dags.to_find_manager(point.tools, clause))
        if not manager:
            raise BadRequest(
                f"{job} is no node of a DAG.", hint="A provisioner is started by DAGMan: PROVISIONER P FILE"
            )
        await here.run(dags.to_tell_provisioned(point.tools, clause))
        return await self.dag(manager, person)
