"""Commands about DAGs at an access point, and the parsers of their output."""

from __future__ import annotations

from sublet.annexes.model.annex import JOB_TARGET
from sublet.annexes.model.dags import COUNTS, QueuedDag
from sublet.annexes.pilots.occupancy import reread
from sublet.annexes.pilots.queue import WORDS, moment_of, number_of, text_of
from sublet.platforms.htcondor.commands import to_edit, to_history, to_queue
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.reach.port import Command

MANAGER = 'JobUniverse == 7 && regexp("/(condor_dagman|pegasus-dagman)$", Cmd)'  # Pegasus starts DAGMan by its own
ATTRIBUTES = (
    *("ClusterId", "JobStatus", "JobBatchName", "QDate", "DAGManJobId", "HoldReason", "RemoveReason", "ExitCode"),
    *(f"DAG_Nodes{name.capitalize()}" for name in COUNTS),
    JOB_TARGET,
)
PROVISIONED = 2  # the value that DAGMan waits for


def to_dags(tools: Tools, constraint: str = "true") -> Command[list[QueuedDag]]:
    """Build the command that lists the person's DAGs in the queue."""
    return reread(to_queue(tools, f"{MANAGER} && ({constraint})", ATTRIBUTES), read_dags)


def to_remember(tools: Tools, constraint: str) -> Command[list[QueuedDag]]:
    """Build the command that lists DAGs that have left the queue."""
    return reread(to_history(tools, f"{MANAGER} && ({constraint})", ATTRIBUTES, 10), read_dags)


def to_tell_provisioned(tools: Tools, job: str) -> Command[int]:
    """Build the command that tells DAGMan that a provisioner is done."""
    return to_edit(tools, job, {"ProvisionerState": str(PROVISIONED)})


def to_find_manager(tools: Tools, job: str) -> Command[str]:
    """Build the command that returns the DAG of a node's job, or an empty string."""

    def read(ads: list[Ad]) -> str:
        return str(ads[0].get("DAGManJobId", "")) if ads else ""

    return reread(to_queue(tools, job, ("DAGManJobId",)), read)


def read_dags(ads: list[Ad]) -> list[QueuedDag]:
    """Parse DAGs, sorted by id."""
    return [_dag(ad) for ad in sorted(ads, key=lambda ad: int(ad["ClusterId"]))]


def _dag(ad: Ad) -> QueuedDag:
    status = int(ad.get("JobStatus", 0))
    id = str(ad["ClusterId"])
    return QueuedDag(
        id=id,
        name=str(ad.get("JobBatchName", "")).removesuffix(f"+{id}"),
        state=WORDS[status - 1] if 0 < status <= len(WORDS) else "idle",
        annex=text_of(ad.get(JOB_TARGET)),
        parent=str(ad.get("DAGManJobId", "")),
        submitted=moment_of(ad.get("QDate")),
        why=text_of(ad.get("HoldReason") or ad.get("RemoveReason")),
        code=number_of(ad.get("ExitCode")),
        **{name: number_of(ad.get(f"DAG_Nodes{name.capitalize()}")) or 0 for name in COUNTS},
    )
