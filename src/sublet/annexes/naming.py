"""Jobs and DAGs that name an annex by a line of their description are marked for it, whoever submitted them."""

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
    """Looks at what is new in the queue, and marks what names an annex."""

    store: Store
    dag_moves: DagMoves
    access_points: AccessPoints
    job_queue: JobQueue

    _queue_watch: QueueWatch = field(default_factory=QueueWatch)
    _naming: asyncio.Task[None] | None = None
    _attributes: Sequence[str] | None = None

    async def look_after(self, now: datetime) -> None:
        """Look at the queue, if there may be something new, beside everything else."""
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
        """Tell sub-DAGs what the DAG says that they are a part of; then mark the nodes of all. Their ids."""
        for changed in dag_moves.inherit([*managers.values()]):
            managers[changed.id] = changed
            await LocalReach("access point").run(dag_moves.to_tell(point.tools, changed, point.contact.owner))
        marked: set[str] = set()
        for manager in (manager for manager in managers.values() if manager.has_followers):
            marked |= await self.dag_moves.follow_dag(point, manager)
        return marked

    async def _mark_jobs(self, point: AccessPoint, jobs: Sequence[NamingJob]) -> None:
        """Mark jobs by their lines, those that say the same together."""
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
            except NotMarkable:  # a factory whose jobs each require something else: those that it has made
                await self.job_queue.edit(point, [job.id for job in same], marks)
            log.info("jobs.named-annex", annex=annex.id, jobs=len(same), first=same[0].id)
            # What started elsewhere before it was seen was never meant to run there.
            for clause in ids([job.id for job in same if job.is_new and job.status == RUNNING]):
                await here.run(to_vacate(point.tools, clause))

    async def _hold_wrong(self, point: AccessPoint, jobs: Iterable[NamingJob]) -> None:
        """Hold what names an annex in a way that can't be one; the reason says how it would be right."""
        wrong: dict[str, list[str]] = {}
        for job in jobs:
            if job.problem and job.status != HELD:
                wrong.setdefault(job.problem, []).append(job.id)
        for problem, same in wrong.items():
            for clause in ids(same):
                await LocalReach("access point").run(to_hold(point.tools, clause, problem))

    async def _find_annex(self, name: str) -> Annex:
        """The owner's annex of this name, which is made if it is new."""
        owner = Person(getpass.getuser(), operator=True)
        return await self.store.write(lambda tx: self.job_queue.find_or_add(tx, name, owner))

    async def _find_attributes(self, point: AccessPoint) -> Sequence[str]:
        """The words that name an annex here: HTCondor's own too, where its own annexes are not in use."""
        if self._attributes is None:
            settings = await LocalReach("access point").run(to_config(point.tools, HTCONDORS_OWN))
            is_theirs = settings.get(HTCONDORS_OWN, "").strip().lower() in TRUE
            self._attributes = JOB_LINES[:1] if is_theirs else JOB_LINES
        return self._attributes
