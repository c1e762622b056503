"""Marks, moves and unmarks whole DAGs while they run: nodes in the queue, and nodes that are submitted later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes, whole
from sublet.annexes.job_queue import JobQueue, Listed
from sublet.annexes.jobs import MOST, Jobs, refuse_marking
from sublet.annexes.model.dags import QueuedDag
from sublet.annexes.model.universes import ON_NODES
from sublet.annexes.pilots import dag_moves, dags, queue
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.dag_moves import Manager
from sublet.kernel.clock import Clock
from sublet.people.model.person import Person
from sublet.platforms.htcondor.commands import ids
from sublet.reach.local import LocalReach


@dataclass
class DagMoves:
    """Changes to jobs that also accept a DAG, by the id of its manager."""

    now: Clock
    jobs: Jobs
    access_points: AccessPoints
    annexes: Annexes
    job_queue: JobQueue

    async def mark(self, jobs: Sequence[str], name: str, person: Person) -> Listed:
        """Assign jobs and DAGs that name no annex to one."""
        named, others = await self._sort_out(jobs, person)
        if not named:
            return await self.jobs.mark(jobs, name, person)
        annex = await self.annexes.annex(whole(name).name, person)
        refuse_marking((dag for dag in named if dag.annex not in ("", annex.id)), "names an annex", "sublet job move")
        rest = await self.jobs.mark(others, name, person) if others else None
        return await self._move_dags(named, annex.id, rest, person, now=False)

    async def move(self, jobs: Sequence[str], name: str, person: Person, *, now: bool = False) -> Listed:
        """Move jobs and DAGs that name an annex to another; `now` stops running jobs, so that they move too."""
        named, others = await self._sort_out(jobs, person)
        if not named:
            return await self.jobs.move(jobs, name, person, now=now)
        annex = await self.annexes.annex(whole(name).name, person)
        refuse_marking((dag for dag in named if not dag.annex), "names no annex", "sublet job mark")
        rest = await self.jobs.move(others, name, person, now=now) if others else None
        return await self._move_dags(named, annex.id, rest, person, now=now)

    async def unmark(self, jobs: Sequence[str], person: Person, *, now: bool = False) -> Listed:
        """Make jobs and DAGs name no annex, so that they run only on open ones; `now` stops running jobs."""
        named, others = await self._sort_out(jobs, person)
        if not named:
            return await self.jobs.unmark(jobs, person, now=now)
        rest = await self.jobs.unmark(others, person, now=now) if others else None
        return await self._move_dags(named, "", rest, person, now=now)

    async def _sort_out(self, wanted: Sequence[str], person: Person) -> tuple[list[QueuedDag], list[str]]:
        """Return the DAGs that these ids name, and the ids of everything else."""
        self.job_queue.require_own(person)
        clusters = [word.removesuffix(".0") for word in wanted if "." not in word.removesuffix(".0")][:MOST]
        point, here = await self.access_points.access_point(), LocalReach("access point")
        running = [dag for clause in ids(clusters) for dag in await here.run(dags.to_dags(point.tools, clause))]
        named = {dag.id for dag in running}
        return running, [word for word in wanted if word.removesuffix(".0") not in named]

    async def _move_dags(
        self, named: Sequence[QueuedDag], annex: str, rest: Listed | None, person: Person, *, now: bool
    ) -> Listed:
        """Record the annex in the managers, including those of sub-DAGs, then mark the nodes that are in the queue."""
        point, here = await self.access_points.access_point(), LocalReach("access point")
        at = round(self.now().timestamp())
        managers = await here.run(dag_moves.to_managers(point.tools))
        parts = dag_moves.find_parts(managers, {dag.id for dag in named})
        for manager in [replace(part, annex=annex, moved=at) for part in parts]:
            await here.run(dag_moves.to_tell(point.tools, manager, point.contact.owner))
            await self.follow_dag(point, manager, now=now)
        clause = " || ".join(f"DAGManJobId == {int(part.id)}" for part in parts) or "false"
        nodes = [job for job in await here.run(queue.to_list(point.tools, clause)) if job.universe in ON_NODES]
        listed = await self.job_queue.describe([*(rest.jobs if rest else ()), *nodes], person)
        return replace(listed, dags=[dag.id for dag in named])

    async def follow_dag(self, point: AccessPoint, manager: Manager, *, now: bool = False) -> set[str]:
        """Mark the nodes of a DAG that aren't assigned to its annex yet; return their ids.

        A node that was submitted after the move, and started elsewhere before it was marked, is stopped; with `now`,
        all running nodes are.
        """
        here = LocalReach("access point")
        followers = await here.run(dag_moves.to_followers(point.tools, manager))
        if not followers:
            return set()
        await self.job_queue.edit(
            point, [follower.id for follower in followers], await self.job_queue.marks_for(point, manager.annex)
        )
        for clause in ids(
            [
                follower.id
                for follower in followers
                if follower.is_running and (now or follower.submitted >= manager.since)
            ]
        ):
            await here.run(queue.to_vacate(point.tools, clause))
        return {follower.id for follower in followers}
