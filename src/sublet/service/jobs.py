"""HTCondor jobs: what they are submitted with for an annex, how they are marked afterwards, and why they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from sublet.core.annex import JOB_TARGET, Annex
from sublet.core.inputs import JOB_INPUTS, JOB_LOOKED, JOB_READY, JOB_UNTIL
from sublet.core.jobs import Explained, Looked, QueuedJob, explain
from sublet.errors import BadRequest, NotFound, NotMarkable, OperatorsOnly, SubletError
from sublet.pilots import queue
from sublet.pilots.access_point import AccessPoint
from sublet.pilots.configuration import quoted_string
from sublet.pilots.jobs import ids, to_edit, to_remove
from sublet.pilots.slots import to_config
from sublet.pilots.submitting import ASKED, environment_for
from sublet.reach.local import LocalReach
from sublet.service.annex_status import AnnexStatus
from sublet.service.annexes import whole
from sublet.service.desk import Person
from sublet.store.tx import Tx

PROGRAMS = ("condor_submit", "condor_submit_dag", "condor_rm", "condor_q")
BROUGHT_FIRST = (JOB_INPUTS, JOB_READY, JOB_LOOKED, JOB_UNTIL)  # by which a job waits for what it shares
MOST = 10_000  # jobs that are changed by one call


@dataclass(frozen=True, slots=True)
class Submitting:
    """With what HTCondor's own tools submit for an annex, in a person's own directory and environment."""

    annex: Annex
    leased: bool  # whether it has nodes, or waits for some
    environment: Mapping[str, str]
    programs: Mapping[str, str]  # name → where it is


@dataclass(frozen=True, slots=True)
class Listed:
    """Jobs, and what the annexes that they name are called."""

    jobs: Sequence[QueuedJob]
    names: Mapping[str, str]


class Jobs(AnnexStatus):
    """A person's own jobs at their own access point."""

    async def submitting(self, name: str, person: Person) -> Submitting:
        """What is needed to submit for an annex; a name that is new is made, so that jobs may wait for its nodes."""
        self._at_home(person)
        named = whole(name)

        def find(tx: Tx) -> tuple[Annex, bool]:
            found = tx.annexes.named(person.name, named.name)
            if found is None:
                found = Annex(str(uuid4()), person.name, named.name, self.now())
                tx.annexes.add(found)
            return found, any(lease.ended is None for lease in tx.leases.list(found.id))

        annex, leased = await self.store.write(find)
        point = await self.access_point()
        already = await LocalReach("access point").run(to_config(point.tools, *ASKED))
        told = environment_for(annex.id, point.contact.owner, point.lease, already)
        where = {"CONDOR_CONFIG": point.tools.configuration} if point.tools.configuration else {}
        programs = {program: point.tools.release.program(program) for program in PROGRAMS}
        return Submitting(annex, leased, {**where, **point.tools.environment, **told}, programs)

    async def jobs(self, person: Person, annex: str = "") -> Listed:
        """The person's jobs in the queue: all, or those that name an annex."""
        self._at_home(person)
        wanted = f"{JOB_TARGET} =?= {quoted_string((await self.annex(annex, person)).id)}" if annex else "true"
        point = await self.access_point()
        found = await LocalReach("access point").run(queue.to_list(point.tools, wanted))
        return await self._listed(found, person)

    async def mark(self, jobs: Sequence[str], name: str, person: Person) -> Listed:
        """Let jobs that name no annex run on one."""
        return await self._mark(jobs, name, person, move=False, now=False)

    async def move(self, jobs: Sequence[str], name: str, person: Person, *, now: bool = False) -> Listed:
        """Let jobs that name an annex run on another; `now` takes those that run off their nodes."""
        return await self._mark(jobs, name, person, move=True, now=now)

    async def _mark(self, jobs: Sequence[str], name: str, person: Person, *, move: bool, now: bool) -> Listed:
        self._at_home(person)
        annex = await self.annex(whole(name).name, person)
        point = await self.access_point()
        found = await self._jobs_named(point, jobs)
        if not move:
            _refuse((job for job in found if job.annex not in ("", annex.id)), "names an annex", "sublet job move")
        else:
            _refuse((job for job in found if not job.annex), "names no annex", "sublet job mark")
        await self._keep_to_annexes(point, found)
        await self._edit(point, found, queue.marked(annex.id, point.contact.owner, self.now()))
        return await self._changed(point, found, person, annex.id, now=now)

    async def unmark(self, jobs: Sequence[str], person: Person, *, now: bool = False) -> Listed:
        """Let jobs run on no annex but those that are open; `now` takes those that run off their nodes."""
        self._at_home(person)
        point = await self.access_point()
        found = await self._jobs_named(point, jobs)
        await self._edit(point, found, queue.unmarked())
        return await self._changed(point, found, person, "", now=now)

    async def remove_jobs(self, jobs: Sequence[str], person: Person) -> Listed:
        """Take jobs out of the queue, and those that run off their nodes; they are told as they were."""
        self._at_home(person)
        point = await self.access_point()
        found = await self._jobs_named(point, jobs)
        for clause in ids([job.id for job in found]):
            await LocalReach("access point").run(to_remove(point.tools, clause, f"{person.name} removed it"))
        return await self._listed(found, person)

    async def _jobs_named(self, point: AccessPoint, wanted: Sequence[str]) -> list[QueuedJob]:
        """The jobs of these ids, in the queue and the person's own."""
        if not 0 < len(wanted) <= MOST:
            raise BadRequest("No job is named." if not wanted else f"More than {MOST} jobs are named at once.")
        here = LocalReach("access point")
        parts = [await here.run(queue.to_list(point.tools, clause)) for clause in ids(wanted)]
        found = list({job.id: job for part in parts for job in part}.values())
        if missing := queue.named(found, wanted):
            raise NotFound(noun="job", name=", ".join(missing), hint="`sublet job list` lists those that wait or run.")
        sessions = [job for job in found if job.session]
        _refuse(sessions, "belongs to a session, whose place was agreed", "sublet cancel SESSION, and ask again")
        return found

    async def _keep_to_annexes(self, point: AccessPoint, jobs: Sequence[QueuedJob]) -> None:
        """Give jobs that were submitted otherwise the clause that keeps them to the annex that they name."""
        here = LocalReach("access point")
        for clause in ids([job.id for job in jobs]):
            required = await here.run(queue.to_requirements(point.tools, clause))
            for expression, lacking in queue.without_clause(required).items():
                for one in ids(lacking):
                    await here.run(to_edit(point.tools, one, {"Requirements": expression}))

    async def _edit(self, point: AccessPoint, jobs: Sequence[QueuedJob], changes: Mapping[str, str]) -> None:
        for clause in ids([job.id for job in jobs]):
            await LocalReach("access point").run(to_edit(point.tools, clause, changes))

    async def _changed(
        self, point: AccessPoint, jobs: Sequence[QueuedJob], person: Person, annex: str, *, now: bool
    ) -> Listed:
        """Take jobs that run elsewhere off their nodes, if that is wanted; then tell how they are."""
        here = LocalReach("access point")
        running = [job.id for job in jobs if job.state in ("running", "suspended") and job.annex != annex]
        for clause in ids(running) if now else ():
            await here.run(queue.to_vacate(point.tools, clause))
        parts = [await here.run(queue.to_list(point.tools, clause)) for clause in ids([job.id for job in jobs])]
        return await self._listed([job for part in parts for job in part], person)

    async def explain_job(self, id: str, person: Person) -> tuple[Listed, Explained]:
        """Why a job runs, waits, is held, or is no more."""
        self._at_home(person)
        point, here = await self.access_point(), LocalReach("access point")
        clause = ids([id])[0]
        found = await here.run(queue.to_list(point.tools, clause)) or await here.run(
            queue.to_remember(point.tools, clause)
        )
        if not found:
            raise NotFound(noun="job", name=id, hint="`sublet job list` lists those that wait or run.")
        job = next((job for job in found if job.state == "idle"), found[0])
        why = explain(job, await self._look_at_job(point, job, person), self.now())
        return await self._listed([job], person), why

    async def _look_at_job(self, point: AccessPoint, job: QueuedJob, person: Person) -> Looked:
        annexes = await self.annexes(person)
        annex = next((one for one in annexes if one.id == job.annex), None)
        wide = [one.name for one in annexes if one.open]
        if job.state != "idle" or annex is None:
            return Looked(None, wide)
        here = LocalReach("access point")
        try:
            nodes, unmet = await asyncio.gather(
                here.run(queue.to_rooms(point.gathering, annex.id)),
                here.run(queue.to_unmet(point.gathering, job.id, annex.id)),
            )
        except SubletError:
            return Looked(await self.annex_state(annex.name, person), wide)
        others = [condition for condition in unmet if not any(name in condition for name in BROUGHT_FIRST)]
        state = await self.annex_state(annex.name, person)
        return Looked(state, wide, nodes, others, bringing=len(others) < len(unmet))

    async def _listed(self, jobs: Sequence[QueuedJob], person: Person) -> Listed:
        return Listed(jobs, await self._names(person))

    async def _names(self, person: Person) -> Mapping[str, str]:
        return {annex.id: annex.name for annex in await self.annexes(person)}

    def _at_home(self, person: Person) -> None:
        """Jobs are those of whose service this is: PersonalOnly on a gateway, OperatorsOnly for guests."""
        self.personal()
        if not person.operator:
            raise OperatorsOnly


def _refuse(jobs: Iterable[QueuedJob], why: str, instead: str) -> None:
    """NotMarkable, if there are any."""
    if found := [job.id for job in jobs]:
        raise NotMarkable(jobs=", ".join(found[:5]), why=f"{why}.", hint=f"`{instead}` does that.")
