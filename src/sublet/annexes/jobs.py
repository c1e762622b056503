"""HTCondor jobs: how to submit them for an annex, how to mark them later, and why they wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes, whole
from sublet.annexes.job_queue import JobQueue, Listed
from sublet.annexes.model.annex import JOB_TARGET, Annex
from sublet.annexes.model.dags import QueuedDag
from sublet.annexes.model.inputs import JOB_INPUTS, JOB_LOOKED, JOB_READY, JOB_UNTIL, WAITS_FOR
from sublet.annexes.model.jobs import Explained, Looked, QueuedJob, explain
from sublet.annexes.model.universes import ON_NODES, advise, say_no
from sublet.annexes.pilots import queue as queue_commands
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.submitting import ASKED, environment_for
from sublet.annexes.status import AnnexStatus
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotFound, NotMarkable, SubletError
from sublet.people.model.person import Person
from sublet.platforms.htcondor.commands import ids, to_remove
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.slots import to_config
from sublet.reach.local import LocalReach
from sublet.store.store import Store
from sublet.store.tx import Tx

PROGRAMS = ("condor_submit", "condor_submit_dag", "condor_rm", "condor_q")
EXCLUSIVELY = "ANNEX_JOBS_EXCLUSIVELY"  # a setting of HTCondor: jobs run only on annexes that HTCondor itself made
BROUGHT_FIRST = (JOB_INPUTS, JOB_READY, JOB_LOOKED, JOB_UNTIL)  # attributes by which a job waits for shared inputs
MOST = 10_000  # jobs that one call may change


@dataclass(frozen=True, slots=True)
class Submitting:
    """What HTCondor's own tools need to submit for an annex, in a person's own directory and environment."""

    annex: Annex
    leased: bool  # whether it has nodes, or is waiting for some
    environment: Mapping[str, str]
    programs: Mapping[str, str]  # name → path


@dataclass
class Jobs:
    """A person's own jobs at their own access point."""

    store: Store
    now: Clock
    status: AnnexStatus
    access_points: AccessPoints
    annexes: Annexes
    queue: JobQueue

    async def submitting(self, name: str, person: Person) -> Submitting:
        """Return what is needed to submit for an annex; a new annex is created, so that jobs can wait for its nodes."""
        self.queue.require_own(person)
        named = whole(name)

        def find(tx: Tx) -> tuple[Annex, bool]:
            known = self.queue.find_or_add(tx, named.name, person)
            return known, any(lease.ended is None for lease in tx.leases.list(known.id))

        annex, leased = await self.store.write(find)
        point = await self.access_points.access_point()
        already = await LocalReach("access point").run(to_config(point.tools, *ASKED))
        marks = environment_for(annex.id, point.contact.owner, point.lease, already)
        where = {"CONDOR_CONFIG": point.tools.configuration} if point.tools.configuration else {}
        programs = {program: point.tools.release.program(program) for program in PROGRAMS}
        return Submitting(annex, leased, {**where, **point.tools.environment, **marks}, programs)

    async def jobs(self, person: Person, annex: str = "") -> Listed:
        """List the person's jobs in the queue: all, or those that name an annex."""
        self.queue.require_own(person)
        wanted = f"{JOB_TARGET} =?= {quote_string((await self.annexes.annex(annex, person)).id)}" if annex else "true"
        point = await self.access_points.access_point()
        queued = await LocalReach("access point").run(queue_commands.to_list(point.tools, wanted))
        return await self.queue.describe(queued, person)

    async def mark(self, jobs: Sequence[str], name: str, person: Person) -> Listed:
        """Assign jobs that name no annex to one."""
        return await self._mark(jobs, name, person, move=False, now=False)

    async def move(self, jobs: Sequence[str], name: str, person: Person, *, now: bool = False) -> Listed:
        """Move jobs that name an annex to another; `now` stops running ones, so that they move too."""
        return await self._mark(jobs, name, person, move=True, now=now)

    async def _mark(self, jobs: Sequence[str], name: str, person: Person, *, move: bool, now: bool) -> Listed:
        self.queue.require_own(person)
        annex = await self.annexes.annex(whole(name).name, person)
        point = await self.access_points.access_point()
        chosen = await self._jobs_named(point, jobs)
        refuse_universes(chosen)
        if not move:
            refuse_marking(
                (job for job in chosen if job.annex not in ("", annex.id)), "names an annex", "sublet job move"
            )
        else:
            refuse_marking((job for job in chosen if not job.annex), "names no annex", "sublet job mark")
        await self.queue.edit(point, jobs, await self.queue.marks_for(point, annex.id))
        return await self._change_jobs(point, jobs, chosen, person, annex.id, now=now)

    async def unmark(self, jobs: Sequence[str], person: Person, *, now: bool = False) -> Listed:
        """Make jobs name no annex, so that they run only on open ones; `now` stops running ones."""
        self.queue.require_own(person)
        point = await self.access_points.access_point()
        chosen = await self._jobs_named(point, jobs)
        await self.queue.edit(point, jobs, await self.queue.marks_for(point, ""))
        return await self._change_jobs(point, jobs, chosen, person, "", now=now)

    async def remove_jobs(self, jobs: Sequence[str], person: Person) -> Listed:
        """Remove jobs from the queue, including running ones; return them as they were before."""
        self.queue.require_own(person)
        point = await self.access_points.access_point()
        chosen = await self._jobs_named(point, jobs)
        for clause in ids(jobs):
            await LocalReach("access point").run(to_remove(point.tools, clause, f"{person.name} removed it"))
        return await self.queue.describe(chosen, person)

    async def _jobs_named(self, point: AccessPoint, wanted: Sequence[str]) -> list[QueuedJob]:
        """Return the person's own queued jobs of these ids; raise NotFound if one is missing."""
        if not 0 < len(wanted) <= MOST:
            raise BadRequest("No job is named." if not wanted else f"More than {MOST} jobs are named at once.")
        chosen = await self._find_jobs(point, wanted)
        if missing := queue_commands.find_unknown(chosen, wanted):
            raise NotFound(
                noun="job", name=", ".join(missing), hint="`sublet job list` lists your waiting and running jobs."
            )
        sessions = [job for job in chosen if job.session]
        refuse_marking(sessions, "belongs to a session, whose place was agreed", "sublet cancel SESSION, and ask again")
        return chosen

    async def _find_jobs(self, point: AccessPoint, wanted: Sequence[str]) -> list[QueuedJob]:
        """Return the jobs of these ids; a cluster that has no jobs yet is returned itself."""
        here, tools = LocalReach("access point"), point.tools
        made = [job for clause in ids(wanted) for job in await here.run(queue_commands.to_list(tools, clause))]
        clusters = {word for word in wanted if "." not in word} - {job.id.partition(".")[0] for job in made}
        none_yet = [
            job
            for clause in ids(sorted(clusters))
            for job in await here.run(queue_commands.to_list_factories(tools, clause))
        ]
        return list({job.id: job for job in [*made, *none_yet]}.values())

    async def _change_jobs(
        self,
        point: AccessPoint,
        wanted: Sequence[str],
        jobs: Sequence[QueuedJob],
        person: Person,
        annex: str,
        *,
        now: bool,
    ) -> Listed:
        """Stop jobs that run elsewhere, if `now` is set; return the jobs in their new state."""
        here = LocalReach("access point")
        running = [job.id for job in jobs if job.state in ("running", "suspended") and job.annex != annex]
        for clause in ids(running) if now else ():
            await here.run(queue_commands.to_vacate(point.tools, clause))
        return await self.queue.describe(await self._find_jobs(point, wanted), person)

    async def explain_job(self, id: str, person: Person) -> tuple[Listed, Explained]:
        """Explain why a job runs, waits, is held, or has ended."""
        self.queue.require_own(person)
        point, here = await self.access_points.access_point(), LocalReach("access point")
        clause = ids([id])[0]
        matches = await here.run(queue_commands.to_list(point.tools, clause)) or await here.run(
            queue_commands.to_remember(point.tools, clause)
        )
        if not matches:
            raise NotFound(noun="job", name=id, hint="`sublet job list` lists your waiting and running jobs.")
        job = next((job for job in matches if job.state == "idle"), matches[0])
        why = explain(job, await self._look_at_job(point, job, person), self.now())
        return await self.queue.describe([job], person), why

    async def _look_at_job(self, point: AccessPoint, job: QueuedJob, person: Person) -> Looked:
        annexes = await self.annexes.annexes(person)
        annex = next((annex for annex in annexes if annex.id == job.annex), None)
        wide = [annex.name for annex in annexes if annex.open]
        if job.state != "idle" or annex is None:
            return Looked(None, wide)
        here = LocalReach("access point")
        try:
            nodes, unmet, settings = await asyncio.gather(
                here.run(queue_commands.to_rooms(point.gathering, annex.id)),
                here.run(queue_commands.to_unmet(point.gathering, job.id, annex.id)),
                here.run(to_config(point.tools, EXCLUSIVELY)),
            )
        except SubletError:
            return Looked(await self.status.annex_state(annex.name, person), wide)
        others = [condition for condition in unmet if not names_in(condition) & WAITS_FOR]
        bringing = any(names_in(condition) & set(BROUGHT_FIRST) for condition in unmet)
        state = await self.status.annex_state(annex.name, person)
        exclusive = settings.get(EXCLUSIVELY, "").strip().lower() in ("true", "t", "yes", "1")
        return Looked(state, wide, nodes, others, exclusive, bringing)


def names_in(condition: str) -> set[str]:
    """Return the words of a condition, the names of its attributes among them."""
    return set(re.findall(r"\w+", condition))


def refuse_universes(jobs: Iterable[QueuedJob]) -> None:
    """Raise NotMarkable if no annex can run one of the jobs."""
    for job in jobs:
        if job.universe not in ON_NODES:
            raise NotMarkable(jobs=job.id, why=say_no(job.universe), hint=advise(job.universe))


def refuse_marking(jobs: Iterable[QueuedJob | QueuedDag], why: str, instead: str) -> None:
    """Raise NotMarkable if there are any such jobs."""
    if refused := [job.id for job in jobs]:
        raise NotMarkable(jobs=", ".join(refused[:5]), why=f"{why}.", hint=f"`{instead}` does that.")
