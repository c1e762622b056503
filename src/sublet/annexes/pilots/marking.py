"""Marking queued jobs for an annex: their current requirements, and the edits that change them.

A cluster is edited as a whole, together with the jobs that a job factory has yet to create (`max_idle`,
`max_materialize`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.annexes.model.annex import JOB_FOLLOWED, JOB_LINES, JOB_SUPPLIER, JOB_TAKEN, JOB_TARGET
from sublet.annexes.model.inputs import JOB_LOOKED, JOB_UNTIL, PATIENCE
from sublet.annexes.pilots.occupancy import VANILLA, reread
from sublet.annexes.pilots.submitting import KEPT_TO
from sublet.kernel.errors import NotMarkable
from sublet.platforms.htcondor.commands import ids, to_edit, to_edit_cluster, to_factories, to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.reach.port import Command

LEASE, LEASE_SETTING = "JobLeaseDuration", "JOB_DEFAULT_LEASE_DURATION"
HTCONDORS_LEASE = 2400  # seconds: the default of a job, if no setting has one
WRITTEN = f'(unparse({JOB_LINES[0]}) != "" ? unparse({JOB_LINES[0]}) : unparse({JOB_LINES[1]}))'  # a job's line
_WANTED = ("ClusterId", "ProcId", "Requirements", LEASE)
_EXPRESSION = re.compile(r"/Expr\((.*)\)/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MarkTerms:
    """The attributes of a job, or of a job factory, that decide where it runs."""

    id: str  # 12.0; 12 for a factory
    requirements: str
    lease: int | None = None  # seconds for which it survives a lost connection to its node

    @property
    def cluster(self) -> str:
        """The job's cluster."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Marks:
    """The attributes to set in jobs, and the lease for jobs that have none of their own."""

    changes: Mapping[str, str]
    lease: int = 0  # 0: unchanged
    usual: int = HTCONDORS_LEASE  # the default lease of a job

    def edit(self, terms: MarkTerms) -> dict[str, str]:
        """Return the attributes to set in one job."""
        return {**self.require(terms), **self.shorten(terms), **self.changes}

    def require(self, terms: MarkTerms) -> dict[str, str]:
        """Return the requirement that keeps a job to the annex that it names, if the job lacks it."""
        if self.lease == 0 or JOB_TARGET in terms.requirements:
            return {}
        return {"Requirements": f"({terms.requirements}) && {KEPT_TO}" if terms.requirements else KEPT_TO}

    def shorten(self, terms: MarkTerms) -> dict[str, str]:
        """Return the lease, for a job without one of its own."""
        is_usual = terms.lease in (None, self.usual, HTCONDORS_LEASE)
        return {LEASE: str(self.lease)} if self.lease and is_usual and terms.lease != self.lease else {}


@dataclass(frozen=True, slots=True)
class Edit:
    """Attributes to set in a whole cluster, or in some jobs."""

    jobs: tuple[str, ...]  # one cluster (12), or jobs (12.0, 12.1)
    changes: Mapping[str, str]


def mark_for(annex: str, supplier: str, now: datetime, lease: timedelta, usual: str = "") -> Marks:
    """Return the marks that make jobs run on an annex; they may first wait for shared inputs to be copied."""
    until = str(round(now.timestamp()) + PATIENCE)
    named = {JOB_TARGET: quote_string(annex), JOB_SUPPLIER: quote_string(supplier)}
    changes = {**named, JOB_UNTIL: until, JOB_LOOKED: "0", **_settle(now)}
    return Marks(changes, round(lease.total_seconds()), int(usual) if usual.isdecimal() else HTCONDORS_LEASE)


def unmark(now: datetime) -> Marks:
    """Return the marks that make jobs run on no annex."""
    return Marks({JOB_TARGET: "undefined", JOB_SUPPLIER: "undefined", **_settle(now)})


def _settle(now: datetime) -> dict[str, str]:
    """Make both the line that names an annex and the job's DAG ineffective, until one of them changes."""
    return {JOB_TAKEN: WRITTEN, JOB_FOLLOWED: str(round(now.timestamp()))}


def to_terms(tools: Tools, constraint: str) -> Command[list[MarkTerms]]:
    """Build the command that returns where jobs may run."""
    return reread(to_queue(tools, f"{VANILLA} && ({constraint})", _WANTED), read_terms)


def to_factory_terms(tools: Tools, constraint: str) -> Command[list[MarkTerms]]:
    """Build the command that returns where the future jobs of job factories may run."""
    return reread(to_factories(tools, constraint, _WANTED), read_terms)


def to_apply(tools: Tools, edit: Edit) -> list[Command[int]]:
    """Return the commands that make an edit."""
    first = edit.jobs[0]
    if "." not in first:
        return [to_edit_cluster(tools, first, edit.changes)]
    return [to_edit(tools, clause, edit.changes) for clause in ids(edit.jobs)]


def read_terms(ads: list[Ad]) -> list[MarkTerms]:
    """Parse the terms of jobs from their ads."""
    return [_read_terms(ad) for ad in ads]


def _read_terms(ad: Ad) -> MarkTerms:
    text = str(ad.get("Requirements") or "")
    expression = _EXPRESSION.fullmatch(text)
    number, lease = ad.get("ProcId"), ad.get(LEASE)
    id = str(ad["ClusterId"]) if number is None or int(number) < 0 else f"{ad['ClusterId']}.{number}"
    return MarkTerms(id, expression[1] if expression else text, lease if isinstance(lease, int) else None)


def plan_edits(
    wanted: Sequence[str], jobs: Sequence[MarkTerms], factories: Sequence[MarkTerms], marks: Marks
) -> list[Edit]:
    """Plan the edits that mark these jobs: clusters as a whole, single jobs by what each needs."""
    whole = {word for word in wanted if "." not in word}
    edits = [edit for cluster in sorted(whole, key=int) for edit in _edit_cluster(cluster, jobs, factories, marks)]
    return edits + _edit_jobs([terms for terms in jobs if terms.cluster not in whole], marks)


def _edit_cluster(cluster: str, jobs: Sequence[MarkTerms], factories: Sequence[MarkTerms], marks: Marks) -> list[Edit]:
    """Edit a cluster as a whole, then again those of its jobs that have other requirements."""
    inside = [terms for terms in jobs if terms.cluster == cluster]
    factory = next((terms for terms in factories if terms.cluster == cluster), None)
    usual = factory or _most_alike(inside)
    if usual is None:
        return []
    others = [terms for terms in inside if terms.requirements != usual.requirements]
    if factory and inside and len(others) == len(inside) and marks.require(factory):
        why = "requires something else for each job, and makes its jobs one after another."
        raise NotMarkable(jobs=cluster, why=why, hint="Submit it with `sublet job submit FILE --annex NAME`.")
    first = Edit((cluster,), marks.edit(usual))
    rewritten = "Requirements" in first.changes  # for all jobs, so the others' own requirements have to be restored
    again = [terms for terms in others if rewritten or marks.require(terms)]
    return [first, *_edit_jobs(again, marks)]


def _most_alike(jobs: Sequence[MarkTerms]) -> MarkTerms | None:
    """Return a job with the most common requirements."""
    if not jobs:
        return None
    [(most, _)] = Counter(terms.requirements for terms in jobs).most_common(1)
    return next(terms for terms in jobs if terms.requirements == most)


def _edit_jobs(jobs: Sequence[MarkTerms], marks: Marks) -> list[Edit]:
    """Return one edit for all jobs that need the same changes."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for terms in jobs:
        own = {"Requirements": terms.requirements} if terms.requirements else {}
        alike.setdefault(tuple({**own, **marks.edit(terms)}.items()), []).append(terms.id)
    return [Edit(tuple(same), dict(changes)) for changes, same in alike.items()]
