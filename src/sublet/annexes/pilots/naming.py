"""Jobs and DAGs whose description names an annex in a line, `MY.AnnexName = "example"`.

The program that submits them needn't know Sublet: condor_submit, DAGMan, Pegasus and Snakemake just pass the line on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sublet.annexes.model.annex import (
    DAG_MOVED,
    JOB_FOLLOWED,
    JOB_LINES,
    JOB_SESSION,
    JOB_TAKEN,
    JOB_TARGET,
    check_name,
)
from sublet.annexes.pilots import dag_moves
from sublet.annexes.pilots.dag_moves import THERE, Manager, read_manager
from sublet.annexes.pilots.dags import MANAGER
from sublet.annexes.pilots.marking import WRITTEN, Marks
from sublet.annexes.pilots.occupancy import VANILLA, reread
from sublet.annexes.pilots.queue import number_of
from sublet.kernel.errors import BadName
from sublet.platforms.htcondor.commands import IDLE, to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.reach.port import Command

HTCONDORS_OWN = "HPC_ANNEX_ENABLED"  # if HTCondor's own annexes are enabled, TargetAnnexName names one of those
ATTRIBUTES = ("ProcId", "JobStatus", "JobUniverse", *JOB_LINES, *dag_moves.ATTRIBUTES)
MANAGERS_UNIVERSE = 7


@dataclass(frozen=True, slots=True)
class NamingJob:
    """A job, or a DAG's manager, whose line hasn't been followed yet."""

    id: str  # 12.0
    attribute: str  # AnnexName
    written: str  # as in the line: "example", in quotes
    name: str = ""  # empty: the value isn't a string
    status: int = IDLE
    is_new: bool = True  # whether none of its lines was followed before

    @property
    def cluster(self) -> str:
        """The job's cluster."""
        return self.id.partition(".")[0]

    @property
    def problem(self) -> str:
        """What is wrong with the line and the correct form, or an empty string."""
        if not self.name:
            word = self.written if self.written.isidentifier() else "example"
            return (
                f"MY.{self.attribute} = {self.written} is no text."
                f' Write the name of the annex in quotes: MY.{self.attribute} = "{word}"'
            )
        try:
            check_name(self.name)
        except BadName as error:
            return f"MY.{self.attribute} = {self.written}: {error.message} {error.hint}".strip()
        return ""


@dataclass(frozen=True, slots=True)
class NamingLook:
    """The result of checking the queue."""

    jobs: Sequence[NamingJob]
    dags: Sequence[NamingJob]
    managers: Sequence[Manager]  # of all DAGs


def to_look(tools: Tools, attributes: Sequence[str] = JOB_LINES) -> Command[NamingLook]:
    """Build the command that lists jobs and DAGs with new lines, except those marked by hand or at submission."""
    line = WRITTEN if len(attributes) > 1 else f"unparse({attributes[0]})"
    unheard = f"{line} =!= {JOB_TAKEN} && ({JOB_TARGET} =?= undefined || {JOB_TAKEN} =!= undefined)"
    jobs = f'({VANILLA} && {THERE} && {JOB_SESSION} =?= undefined && {line} != "" && {unheard})'
    return reread(to_queue(tools, f"{jobs} || ({MANAGER})", ATTRIBUTES), lambda ads: read_look(ads, attributes))


def read_look(ads: list[Ad], attributes: Sequence[str] = JOB_LINES) -> NamingLook:
    """Parse the jobs and DAGs that name an annex, and all managers of DAGs."""
    managers = [ad for ad in ads if ad.get("JobUniverse") == MANAGERS_UNIVERSE]
    return NamingLook(
        jobs=[read_naming(ad, attributes) for ad in ads if ad not in managers],
        dags=[read_naming(ad, attributes) for ad in managers if _is_unheard(ad, attributes)],
        managers=[read_manager(ad) for ad in managers],
    )


def _is_unheard(ad: Ad, attributes: Sequence[str]) -> bool:
    """Whether a DAG's line hasn't been followed yet, and nothing else takes precedence."""
    taken = ad.get(JOB_TAKEN)
    if DAG_MOVED in ad or (JOB_TARGET in ad and taken is None) or not any(name in ad for name in attributes):
        return False
    return taken is None or (not str(taken).startswith("/Expr(") and read_naming(ad, attributes).written != taken)


def read_naming(ad: Ad, attributes: Sequence[str] = JOB_LINES) -> NamingJob:
    """Parse the line of a job or a DAG's manager."""
    attribute = next((name for name in attributes if name in ad), attributes[0])
    written, name = _read_value(ad.get(attribute))
    return NamingJob(
        id=f"{ad['ClusterId']}.{ad.get('ProcId', 0)}",
        attribute=attribute,
        written=written,
        name=name,
        status=number_of(ad.get("JobStatus")) or IDLE,
        is_new=JOB_TAKEN not in ad,
    )


def _read_value(value: Any) -> tuple[str, str]:
    """Return a value as written in an ad and, if it is a string, its text."""
    if not isinstance(value, str):
        return json.dumps(value), ""
    if value.startswith("/Expr(") and value.endswith(")/"):
        return value[len("/Expr(") : -len(")/")], ""
    return quote_string(value), value


def follow_line(marks: Marks, written: str) -> Marks:
    """Return marks for jobs that follow their line, so that they are marked again when it changes."""
    changes = {name: value for name, value in marks.changes.items() if name != JOB_FOLLOWED}  # a DAG's move wins
    return replace(marks, changes={**changes, JOB_TAKEN: quote_string(written)})


def to_count(tools: Tools, clusters: Sequence[str]) -> Command[Counter[str]]:
    """Build the command that counts the queued jobs of clusters."""
    clause = "||".join(f"ClusterId=={cluster}" for cluster in clusters)
    return reread(to_queue(tools, clause, ("ClusterId",)), lambda ads: Counter(str(ad["ClusterId"]) for ad in ads))


def choose_whole(jobs: Sequence[NamingJob], sizes: Counter[str]) -> list[str]:
    """Return the ids of these jobs; a complete cluster by its own id, so that future jobs are included."""
    here = Counter(job.cluster for job in jobs)
    whole = {cluster for cluster, count in here.items() if count >= sizes[cluster]}
    return [*sorted(whole, key=int), *(job.id for job in jobs if job.cluster not in whole)]
