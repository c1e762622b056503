"""Marks jobs and DAGs for the annex that a line of their description names, whichever program submitted them."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.dag_moves import DagMoves
from sublet.annexes.job_queue import JobQueue
from sublet.annexes.model.annex import JOB_LINES, Annex
from sublet.annexes.pilots import dag_moves, naming
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.dag_moves import Manager
from sublet.annexes.pilots.naming import HTCONDORS_OWN, NamingJob
from sublet.annexes.pilots.queue import to_vacate
from sublet.annexes.queue_watch import QueueWatch
from sublet.kernel.errors import NotMarkable, SubletError
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.platforms.htcondor.commands import HELD, RUNNING, ids, to_edit_cluster, to_hold
from sublet.platforms.htcondor.slots import to_config
from sublet.reach.local import LocalReach
from sublet.store.store import Store

TRUE = ("true", "t", "yes", "1")


@dataclass
class Naming:
    """Checks the queue for new jobs, and marks those that name an annex."""

    store: Store
    dag_moves: DagMoves
    access_points: AccessPoints
    job_queue: JobQueue

    _queue_watch: QueueWatch = field(default_factory=QueueWatch)
    _naming: asyncio.Task[None] | None = None
    _attributes: Sequence[str] | None = None

    async def look_after(self, now: datetime) -> None:
        """Check the queue in the background, if there may be something new."""
        if self.access_points.point is None or (self._naming and not self._naming.done()):
            return
        if self._queue_watch.is_due(self.access_points.point, now):
            self._naming = asyncio.create_task(self._look_at_lines(self.access_points.point), name="annex names")

    async def _look_at_lines(self, point: AccessPoint) -> None:
        try:
            await self._follow_lines(point)
        except (SubletError, OSError) as error:
            log.warning("annex-names.failed", why=str(error))

    async def _follow_lines(self, point: AccessPoint) -> None:
        """Mark DAGs by their lines, then nodes by their DAGs, then other jobs by their lines."""
        here = LocalReach("access point")
        look = await here.run(naming.to_look(point.tools, await self._find_attributes(point)))
        await self._hold_wrong(point, [*look.dags, *look.jobs])
        managers = {manager.id: manager for manager in look.managers}
        for dag in (dag for dag in look.dags if not dag.problem):
            annex = await self._find_annex(dag.name)
            managers[dag.cluster] = replace(managers[dag.cluster], annex=annex.id, is_named=True)
            changes = naming.follow_line(await self.job_queue.marks_for(point, annex.id), dag.written).changes
            await here.run(to_edit_cluster(point.tools, dag.cluster, changes))
        followed = await self._follow_dags(point, managers)
        await self._mark_jobs(point, [job for job in look.jobs if not job.problem and job.id not in followed])

    async def _follow_dags(self, point: AccessPoint, managers: dict[str, Manager]) -> set[str]:
        """Pass a DAG's annex on to its sub-DAGs, then mark the nodes of all; return the ids of these nodes."""
        for changed in dag_moves.inherit([*managers.values()]):
            managers[changed.id] = changed
            await LocalReach("access point").run(dag_moves.to_tell(point.tools, changed, point.contact.owner))
        marked: set[str] = set()
        for manager in (manager for manager in managers.values() if manager.has_followers):
            marked |= await self.dag_moves.follow_dag(point, manager)
        return marked

    async def _mark_jobs(self, point: AccessPoint, jobs: Sequence[NamingJob]) -> None:
        """Mark jobs by their lines, grouped by identical lines."""
        alike: dict[tuple[str, str], list[NamingJob]] = {}
        for job in jobs:
            alike.setdefault((job.name, job.written), []).append(job)
        if not alike:
            return
        here = LocalReach("access point")
        sizes = await here.run(naming.to_count(point.tools, sorted({job.cluster for job in jobs})))
        for (name, written), same in alike.items():
            annex = await self._find_annex(name)
            marks = naming.follow_line(await self.job_queue.marks_for(point, annex.id), written)
            try:
                await self.job_queue.edit(point, naming.choose_whole(same, sizes), marks)
            except NotMarkable:  # a factory whose jobs have different requirements: mark the jobs that exist
                await self.job_queue.edit(point, [job.id for job in same], marks)
            log.info("jobs.named-annex", annex=annex.id, jobs=len(same), first=same[0].id)
            # A job that started elsewhere before it was marked was never meant to run there.
            for clause in ids([job.id for job in same if job.is_new and job.status == RUNNING]):
                await here.run(to_vacate(point.tools, clause))

    async def _hold_wrong(self, point: AccessPoint, jobs: Iterable[NamingJob]) -> None:
        """Hold jobs with an invalid annex name; the hold reason shows the correct form."""
        wrong: dict[str, list[str]] = {}
        for job in jobs:
            if job.problem and job.status != HELD:
                wrong.setdefault(job.problem, []).append(job.id)
        for problem, same in wrong.items():
            for clause in ids(same):
                await LocalReach("access point").run(to_hold(point.tools, clause, problem))

    async def _find_annex(self, name: str) -> Annex:
        """Return the owner's annex of this name, creating it if it is new."""
        owner = Person(getpass.getuser(), operator=True)
        return await self.store.write(lambda tx: self.job_queue.find_or_add(tx, name, owner))

    async def _find_attributes(self, point: AccessPoint) -> Sequence[str]:
        """Return the attributes that name an annex here, with HTCondor's own if its annexes aren't enabled."""
        if self._attributes is None:
            settings = await LocalReach("access point").run(to_config(point.tools, HTCONDORS_OWN))
            is_theirs = settings.get(HTCONDORS_OWN, "").strip().lower() in TRUE
            self._attributes = JOB_LINES[:1] if is_theirs else JOB_LINES
        return self._attributes
