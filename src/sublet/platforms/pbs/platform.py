"""PBS Professional and OpenPBS, through their command line: qsub, qstat, qdel, pbsnodes; here, or over OpenSSH.

Written from their manuals, and not yet tried on a real system. A job is named `s-KEY`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from sublet.booking.model.job import Job
from sublet.platforms.batch.job import Submission
from sublet.platforms.batch.planning import SitePlan
from sublet.platforms.batch.queued_platform import QueuedPlatform
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.pbs import commands as to
from sublet.platforms.pbs import readers as read
from sublet.platforms.pbs.options import PbsWish, check_options, words_for
from sublet.platforms.pbs.queues import read_queues
from sublet.platforms.pbs.scheduler import PBS


class Pbs(QueuedPlatform):
    """A cluster with PBS."""

    kind: ClassVar[str] = "pbs"
    scheduler: ClassVar[Scheduler] = PBS
    starts_each_node: ClassVar[bool] = True
    options: Annotated[tuple[str, ...], AfterValidator(check_options)] = Field(
        default=(),
        description="More options for qsub, which some sites require: `-A myproject`, `-l filesystems=home:eagle`.",
    )
    limit_stays: ClassVar[str] = "only an operator changes the walltime of a job that runs"

    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        """Read the queues and nodes."""
        queues = read_queues(answers.get("queues", ""))
        return queues.open, [queues.place(node) for node in read.read_nodes(answers.get("nodes", ""))]

    async def _find_plan(self, now: datetime) -> SitePlan:
        outcome = await self.reach.run(to.to_plan())
        if outcome.code:
            raise self.failures.explain(outcome)
        nodes = self._list_nodes()
        sizes = {each.node.name: each.node for each in nodes}
        exclusive = read.read_exclusive(self._surveyor.said.get("nodes", ""))
        takes = self.failures.read(lambda: read.read_takes(outcome.text, now, sizes, exclusive))
        return SitePlan(nodes, takes)

    def _write_submission(self, job: Job, queue: str, project: str) -> Submission:
        wish = PbsWish(queue, job.amounts, job.begin)
        words = words_for(wish, replace(job.scheduler, project=project), self.options)
        return Submission(words, job.amounts, wish.limit)
