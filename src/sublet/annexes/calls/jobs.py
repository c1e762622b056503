"""HTCondor jobs: list, mark, move, remove, explain; and what they are submitted with."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.annexes.views.jobs import JobExplanation, JobList, SubmittingView
from sublet.client.call import Call, as_view, body_of, path_of

READ_JOBS = as_view(JobList)


def jobs(annex: str = "") -> Call[JobList]:
    """The caller's jobs in the queue: all, or those that name an annex."""
    return Call("GET", path_of("jobs"), READ_JOBS, query={"annex": annex})


def explain(id: str) -> Call[JobExplanation]:
    """Why a job is where it is."""
    return Call("GET", path_of("jobs", id, "explain"), as_view(JobExplanation))


def mark(ids: Sequence[str], annex: str) -> Call[JobList]:
    """Let jobs that name no annex run on one."""
    return _change("mark", ids, annex=annex)


def move(ids: Sequence[str], annex: str, *, now: bool = False) -> Call[JobList]:
    """Let jobs that name an annex run on another; `now` takes those that run off their nodes."""
    return _change("move", ids, annex=annex, now=now)


def unmark(ids: Sequence[str], *, now: bool = False) -> Call[JobList]:
    """Let jobs run on no annex but those that are open."""
    return _change("unmark", ids, now=now)


def remove(ids: Sequence[str]) -> Call[JobList]:
    """Take jobs out of the queue, and those that run off their nodes; as they were."""
    return _change("remove", ids)


def submitting(annex: str) -> Call[SubmittingView]:
    """What HTCondor's own tools need to submit for an annex."""
    return Call("POST", path_of("annexes", annex, "submitting"), as_view(SubmittingView))


def _change(verb: str, ids: Sequence[str], **fields: object) -> Call[JobList]:
    return Call("POST", path_of("jobs", verb), READ_JOBS, body=body_of({"jobs": list(ids), **fields}))
