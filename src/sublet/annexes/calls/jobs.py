"""Calls about HTCondor jobs: list, mark, move, remove, explain; and how to submit them."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.annexes.views.jobs import JobExplanation, JobList, SubmittingView
from sublet.client.call import Call, as_view, body_of, path_of

READ_JOBS = as_view(JobList)


def jobs(annex: str = "") -> Call[JobList]:
    """List the caller's jobs in the queue: all, or those that name an annex."""
    return Call("GET", path_of("jobs"), READ_JOBS, query={"annex": annex})


def explain(id: str) -> Call[JobExplanation]:
    """Explain why a job is in its state."""
    return Call("GET", path_of("jobs", id, "explain"), as_view(JobExplanation))


def mark(ids: Sequence[str], annex: str) -> Call[JobList]:
    """Assign jobs that name no annex to one."""
    return _change("mark", ids, annex=annex)


def move(ids: Sequence[str], annex: str, *, now: bool = False) -> Call[JobList]:
    """Move jobs that name an annex to another; `now` stops running ones, so that they move too."""
    return _change("move", ids, annex=annex, now=now)


def unmark(ids: Sequence[str], *, now: bool = False) -> Call[JobList]:
    """Make jobs name no annex, so that they run only on open ones."""
    return _change("unmark", ids, now=now)


def remove(ids: Sequence[str]) -> Call[JobList]:
    """Remove jobs from the queue, including running ones; return them as they were before."""
    return _change("remove", ids)


def submitting(annex: str) -> Call[SubmittingView]:
    """Return what HTCondor's own tools need to submit jobs for an annex."""
    return Call("POST", path_of("annexes", annex, "submitting"), as_view(SubmittingView))


def _change(verb: str, ids: Sequence[str], **fields: object) -> Call[JobList]:
    return Call("POST", path_of("jobs", verb), READ_JOBS, body=body_of({"jobs": list(ids), **fields}))
