"""DAGs of HTCondor jobs over HTTP: list, show, remove; and reports of provisioners."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from sublet.annexes.views.jobs import DagList, DagView
from sublet.annexes.views.jobs_convert import dag_view
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of

router = APIRouter(prefix="/v1/dags", tags=["Annexes"])

PROBLEMS = described.problems(400, 401, 403, 404, 409, 503)
Id = Annotated[str, Path(description="A DAG, by the cluster of its manager: `12`.")]
Job = Annotated[str, Path(description="The provisioner's own job: `13.0`.")]


@router.get("", response_model=DagList, responses=PROBLEMS)
async def dags(request: Request) -> Response:
    """The owner's DAGs that go on."""
    listed, names = await service_of(request).annexes.dags.dags(await person_of(request))
    return json_response(DagList(items=tuple(dag_view(dag, names) for dag in listed)))


@router.get("/{id}", response_model=DagView, responses=PROBLEMS)
async def dag(request: Request, id: Id) -> Response:
    """One DAG: how far it is, or how it ended."""
    return json_response(dag_view(*await service_of(request).annexes.dags.dag(id, await person_of(request))))


@router.delete("/{id}", status_code=204, responses=PROBLEMS)
async def remove(request: Request, id: Id) -> Response:
    """End a DAG, with its jobs."""
    await service_of(request).annexes.dags.remove_dag(id, await person_of(request))
    return Response(status_code=204)


@router.post("/provisioners/{job}/ready", response_model=DagView, responses=PROBLEMS)
async def end_provisioning(request: Request, job: Job) -> Response:
    """Tell a DAG that its provisioner has done its work; the DAG."""
    return json_response(
        dag_view(*await service_of(request).annexes.dags.end_provisioning(job, await person_of(request)))
    )
