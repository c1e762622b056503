"""How jobs that are in the queue are marked for an annex: what they require now, and the edits that change it.

A cluster is edited as one, and with it the jobs that a job factory has yet to make (`max_idle`, `max_materialize`).
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
HTCONDORS_LEASE = 2400  # seconds: what a job has that says nothing, where no setting does
WRITTEN = f'(unparse({JOB_LINES[0]}) != "" ? unparse({JOB_LINES[0]}) : unparse({JOB_LINES[1]}))'  # a job's line
_WANTED = ("ClusterId", "ProcId", "Requirements", LEASE)
_EXPRESSION = re.compile(r"/Expr\((.*)\)/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MarkTerms:
    """What a job, or a factory of jobs, says of where it runs."""

    id: str  # 12.0; 12 for a factory
    requirements: str
    lease: int | None = None  # seconds for which it outlives a lost connection to its node

    @property
    def cluster(self) -> str:
        """The cluster that it is of."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Marks:
    """What is set in jobs, and the lease that they get unless they said one themselves."""

    changes: Mapping[str, str]
    lease: int = 0  # 0: what they have
    usual: int = HTCONDORS_LEASE  # the lease of a job that said none

    def edit(self, terms: MarkTerms) -> dict[str, str]:
        """What is set in one job."""
        return {**self.require(terms), **self.shorten(terms), **self.changes}

    def require(self, terms: MarkTerms) -> dict[str, str]:
        """The clause that keeps a job to the annex that it names, if it lacks it."""
        if self.lease == 0 or JOB_TARGET in terms.requirements:
            return {}
        return {"Requirements": f"({terms.requirements}) && {KEPT_TO}" if terms.requirements else KEPT_TO}

    def shorten(self, terms: MarkTerms) -> dict[str, str]:
        """The lease, for a job that said none."""
        is_usual = terms.lease in (None, self.usual, HTCONDORS_LEASE)
        return {LEASE: str(self.lease)} if self.lease and is_usual and terms.lease != self.lease else {}


@dataclass(frozen=True, slots=True)
class Edit:
    """Attributes that are set in a whole cluster, or in some jobs."""

    jobs: tuple[str, ...]  # one cluster (12), or jobs (12.0, 12.1)
    changes: Mapping[str, str]


def mark_for(annex: str, supplier: str, now: datetime, lease: timedelta, usual: str = "") -> Marks:
    """What makes jobs run on an annex; what they share with others may be brought there first."""
    until = str(round(now.timestamp()) + PATIENCE)
    named = {JOB_TARGET: quote_string(annex), JOB_SUPPLIER: quote_string(supplier)}
    changes = {**named, JOB_UNTIL: until, JOB_LOOKED: "0", **_settle(now)}
    return Marks(changes, round(lease.total_seconds()), int(usual) if usual.isdecimal() else HTCONDORS_LEASE)


def unmark(now: datetime) -> Marks:
    """What makes jobs run on no annex."""
    return Marks({JOB_TARGET: "undefined", JOB_SUPPLIER: "undefined", **_settle(now)})


def _settle(now: datetime) -> dict[str, str]:
    """From now on neither the line by which a job names an annex nor its DAG counts, until one of them changes."""
    return {JOB_TAKEN: WRITTEN, JOB_FOLLOWED: str(round(now.timestamp()))}


def to_terms(tools: Tools, constraint: str) -> Command[list[MarkTerms]]:
    """What jobs say of where they run."""
    return reread(to_queue(tools, f"{VANILLA} && ({constraint})", _WANTED), read_terms)


def to_factory_terms(tools: Tools, constraint: str) -> Command[list[MarkTerms]]:
    """What factories of jobs say of where those run that they have yet to make."""
    return reread(to_factories(tools, constraint, _WANTED), read_terms)


def to_apply(tools: Tools, edit: Edit) -> list[Command[int]]:
    """The commands that make an edit."""
    first = edit.jobs[0]
    if "." not in first:
        return [to_edit_cluster(tools, first, edit.changes)]
    return [to_edit(tools, clause, edit.changes) for clause in ids(edit.jobs)]


def read_terms(ads: list[Ad]) -> list[MarkTerms]:
    """Expressions as ClassAds write them."""
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
    """The edits that mark what was named: clusters as one, single jobs by what each needs."""
    whole = {word for word in wanted if "." not in word}
    edits = [edit for cluster in sorted(whole, key=int) for edit in _edit_cluster(cluster, jobs, factories, marks)]
    return edits + _edit_jobs([terms for terms in jobs if terms.cluster not in whole], marks)


def _edit_cluster(cluster: str, jobs: Sequence[MarkTerms], factories: Sequence[MarkTerms], marks: Marks) -> list[Edit]:
    """A cluster as one; then those of its jobs again that require something else."""
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
    rewritten = "Requirements" in first.changes  # of all of them: what the others required is written again
    again = [terms for terms in others if rewritten or marks.require(terms)]
    return [first, *_edit_jobs(again, marks)]


def _most_alike(jobs: Sequence[MarkTerms]) -> MarkTerms | None:
    """One of the jobs that require what most of them do."""
    if not jobs:
        return None
    [(most, _)] = Counter(terms.requirements for terms in jobs).most_common(1)
    return next(terms for terms in jobs if terms.requirements == most)


def _edit_jobs(jobs: Sequence[MarkTerms], marks: Marks) -> list[Edit]:
    """One edit for all jobs that need the same."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for terms in jobs:
        own = {"Requirements": terms.requirements} if terms.requirements else {}
        alike.setdefault(tuple({**own, **marks.edit(terms)}.items()), []).append(terms.id)
    return [Edit(tuple(same), dict(changes)) for changes, same in alike.items()]
