"""DAGs of HTCondor jobs, as their managers report them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.annexes.model.jobs import JobWord

COUNTS = ("total", "done", "prerun", "queued", "postrun", "ready", "unready", "failed", "futile")


@dataclass(frozen=True, slots=True)
class QueuedDag:
    """A DAG, by its manager's job."""

    id: str  # the cluster of its manager
    name: str
    state: JobWord
    annex: str = ""  # the id of the annex that its nodes name
    parent: str = ""  # the DAG of which it is a sub-DAG
    submitted: datetime | None = None
    total: int = 0  # nodes
    done: int = 0
    prerun: int = 0
    queued: int = 0
    postrun: int = 0
    ready: int = 0
    unready: int = 0
    failed: int = 0
    futile: int = 0  # nodes that can't run because others failed
    why: str = ""  # why it is held, or was removed
    code: int | None = None

    @property
    def only_provisioner(self) -> bool:
        """Whether only the provisioner is left, for which the DAG's manager waits."""
        under_way = self.prerun + self.postrun + self.ready + self.unready
        return self.total > 0 and not under_way and self.queued <= 1 and self.done + self.failed + self.futile > 0
