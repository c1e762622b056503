"""Submitting a session once: its files and job go in one exec, which does nothing if the session's directory exists."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.booking.model.job import Job
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.batch import commands as to
from sublet.platforms.batch.guest import GuestDirectory
from sublet.platforms.batch.job import EACH, Submission, Surroundings, is_for_each_node, pack, program
from sublet.platforms.batch.quoting import inside
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.scripts import each_script, job_script, nodes_script, read_script
from sublet.platforms.batch.watch import SiteWatch
from sublet.reach.port import Outcome, Reach

UNSURE = 76  # exit code of `submit.sh`: the scheduler may or may not have the job


@dataclass(frozen=True, slots=True)
class Submitter:
    """Submits the sessions of one platform to its scheduler."""

    scheduler: Scheduler
    platform: str
    reach: Reach
    guest: GuestDirectory
    watch: SiteWatch

    async def submit(self, job: Job, key: str, submission: Submission, around: Surroundings) -> None:
        """Send staged data, then submit the job; a session that was submitted before is left unchanged."""
        contents = self._files(job, self.guest.check_key(key), submission, around)
        await self.guest.carry_once(key)
        root = await self.guest.root()
        outcome = await self.reach.run(to.to_submit(self.scheduler, root, key, submission.words, pack(contents)))
        self._check(outcome)
        submitted = to.read_submitted(outcome.text)
        if not submitted.known or not self.watch.knows(key):
            self.watch.note_submitted(
                key, submitted.id, job.amounts.parts
            )  # discard what was seen before the submission
        await self.guest.leave_to_job(key)

    def _check(self, outcome: Outcome) -> None:
        if outcome.code == UNSURE:
            why = f"it may or may not have taken the job: {outcome.complaint}"
            raise PlatformUnreachable(platform=self.platform, why=why)
        if outcome.code:
            raise self.scheduler.failures(self.platform).explain(outcome)

    def _files(self, job: Job, key: str, submission: Submission, around: Surroundings) -> dict[str, bytes]:
        """Return the files for the session's directory."""
        try:
            text = program(job, key, submission, around)
        except ValueError as error:
            raise PlatformRefused(platform=self.platform, why=str(error)) from error
        for path in (*(mount.source for mount in job.mounts), *job.kept):
            inside(path, self.platform, "the session's directory")
        for place in job.places:
            inside(place.target.lstrip("/"), self.platform)
        files = {f"work/{inside(name, self.platform)}": data for name, data in job.program.files.items()}
        own = {
            "job.sh": job_script(self.scheduler.package),
            "life.sh": read_script("life"),
            "program": text,
            "owner": f"{self.guest.owner}\n",
            "duration": f"{submission.seconds}\n",
        }
        if job.amounts.parts > 1:
            own["parts"] = f"{job.amounts.parts}\n"
        if is_for_each_node(job):
            own[EACH] = each_script() if self.scheduler.reaches_nodes else each_script(self.scheduler.package)
        if job.amounts.nodes > 1 and self.scheduler.reaches_nodes:
            own["nodes.sh"] = nodes_script(self.scheduler.package)
        return {
            **files,
            **submission.files,
            **{name: content.encode("utf-8", "surrogateescape") for name, content in own.items()},
        }
