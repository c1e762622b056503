"""LSF, through its command line: bsub, bjobs, bkill, bhosts; on this machine, or on one that is reached over OpenSSH.

Written from its manuals, and not yet tried on a real system. A job's name is its session's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from sublet.booking.model.job import Job
from sublet.platforms.batch.job import Submission
from sublet.platforms.batch.planning import SitePlan
from sublet.platforms.batch.queued_platform import QueuedPlatform
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.lsf import commands as to
from sublet.platforms.lsf import readers as read
from sublet.platforms.lsf.options import LsfWish, words_for
from sublet.platforms.lsf.scheduler import LSF


class Lsf(QueuedPlatform):
    """A cluster with LSF."""

    kind: ClassVar[str] = "lsf"
    scheduler: ClassVar[Scheduler] = LSF
    starts_each_node: ClassVar[bool] = True
    limit_stays: ClassVar[str] = "LSF keeps the run limit of a job that runs"

    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        """Read the queues and nodes.

        Each node counts for every queue, as LSF says what it excludes only at submission.
        """
        queues = read.read_queues(answers.get("queues", ""))
        names = tuple(queue.name for queue in queues)
        nodes = read.read_nodes(answers.get("load", ""), answers.get("hosts", ""), answers.get("gpus", ""))
        return queues, [replace(node, queues=names) for node in nodes]

    async def _find_plan(self, now: datetime) -> SitePlan:
        outcome = await self.reach.run(to.to_plan())
        if outcome.code and not to.NONE.search(outcome.complaint):
            raise self.failures.explain(outcome)
        takes = self.failures.read(lambda: read.read_takes(outcome.text, now))
        return SitePlan(self._list_nodes(), takes)

    def _write_submission(self, job: Job, queue: str, project: str) -> Submission:
        wish = LsfWish(queue, job.amounts, job.begin)
        return Submission(words_for(wish, replace(job.scheduler, project=project)), job.amounts, wish.limit)
