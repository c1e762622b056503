"""HTCondor jobs at the access point over HTTP: list, mark, move, remove, explain; and how to submit them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from sublet.annexes.job_queue import Listed
from sublet.annexes.views.jobs import JobExplanation, JobList, MarkAsk, SubmittingView
from sublet.annexes.views.jobs_convert import job_view
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of

router = APIRouter(prefix="/v1", tags=["Annexes"])

PROBLEMS = described.problems(400, 401, 403, 404, 409, 503)
OfAnnex = Annotated[str, Query(description="Only jobs that name this annex.")]
Id = Annotated[str, Path(description="A job: `12.0`; or one of a cluster that waits: `12`.")]
Name = Annotated[str, Path(description="An annex.")]


@router.get("/jobs", response_model=JobList, responses=PROBLEMS)
async def jobs(request: Request, annex: OfAnnex = "") -> Response:
    """The owner's jobs in the queue."""
    return _list(await service_of(request).annexes.jobs.jobs(await person_of(request), annex))


@router.get("/jobs/{id}/explain", response_model=JobExplanation, responses=PROBLEMS)
async def explain(request: Request, id: Id) -> Response:
    """Why a job runs, waits, is held, or is no more."""
    listed, why = await service_of(request).annexes.jobs.explain_job(id, await person_of(request))
    view = job_view(listed.jobs[0], listed.names)
    return json_response(JobExplanation(job=view, sentences=why.sentences, hint=why.hint))


@router.post("/jobs/mark", response_model=JobList, responses=PROBLEMS)
async def mark(request: Request, ask: MarkAsk) -> Response:
    """Let jobs that name no annex run on one."""
    return _list(await service_of(request).annexes.dag_moves.mark(ask.jobs, ask.annex, await person_of(request)))


@router.post("/jobs/move", response_model=JobList, responses=PROBLEMS)
async def move(request: Request, ask: MarkAsk) -> Response:
    """Let jobs that name an annex run on another."""
    return _list(
        await service_of(request).annexes.dag_moves.move(ask.jobs, ask.annex, await person_of(request), now=ask.now)
    )


@router.post("/jobs/unmark", response_model=JobList, responses=PROBLEMS)
async def unmark(request: Request, ask: MarkAsk) -> Response:
    """Let jobs run on no annex but those that are open."""
    return _list(await service_of(request).annexes.dag_moves.unmark(ask.jobs, await person_of(request), now=ask.now))


@router.post("/jobs/remove", response_model=JobList, responses=PROBLEMS)
async def remove(request: Request, ask: MarkAsk) -> Response:
    """Take jobs out of the queue, and those that run off their nodes."""
    return _list(await service_of(request).annexes.jobs.remove_jobs(ask.jobs, await person_of(request)))


@router.post("/annexes/{name}/submitting", response_model=SubmittingView, responses=PROBLEMS)
async def submitting(request: Request, name: Name) -> Response:
    """What HTCondor's own tools need to submit for an annex; a name that is new is made."""
    access = await service_of(request).annexes.jobs.submitting(name, await person_of(request))
    view = SubmittingView(
        annex=access.annex.name,
        id=access.annex.id,
        leased=access.leased,
        environment=access.environment,
        programs=access.programs,
    )
    return json_response(view)


def _list(listed: Listed) -> Response:
    items = tuple(job_view(job, listed.names) for job in listed.jobs)
    return json_response(JobList(items=items, dags=tuple(listed.dags)))
