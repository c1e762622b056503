"""A person's own annexes over HTTP: named nodes, leased to run HTCondor jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from sublet.annexes.lease_plans import WantedLease
from sublet.annexes.model.annex import Annex
from sublet.annexes.views.annexes import (
    AnnexHistory,
    AnnexList,
    AnnexView,
    CloseAsk,
    DrainAsk,
    GuestAsk,
    LeaseAsk,
    LeaseView,
    PlanView,
    RenameAsk,
    ShutdownAsk,
)
from sublet.annexes.views.convert import annex_view, details_of, lease_view, plan_view
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.idempotency import Key
from sublet.api.people import person_of, service_of
from sublet.booking.views.convert import event_view
from sublet.people.model.person import Person

router = APIRouter(prefix="/v1/annexes", tags=["Annexes"])

Name = Annotated[str, Path(description="An annex, or leases of it: `example`, `example#3`, `example@2026-11-14`.")]
LOOK = described.problems(400, 401, 404, 409)
CHANGE = described.problems(400, 401, 404, 409, 503)


@router.get("", response_model=AnnexList, responses=described.problems(401, 409))
async def annexes(request: Request) -> Response:
    """The asker's annexes, with the leases that have not ended."""
    states = await service_of(request).annexes.status.annex_states(await person_of(request))
    return json_response(AnnexList(items=tuple(map(annex_view, states))))


@router.post("", status_code=201, response_model=LeaseView, **described.describe_keyed(CHANGE))
async def create(request: Request, ask: LeaseAsk, key: Key) -> Response:
    """Make an annex: its name must be new, or have no lease that goes on."""
    return await _lease(request, ask.name, ask, key, more=False)


@router.post("/{name}/plan", response_model=PlanView, responses=CHANGE)
async def plan(request: Request, name: Name, ask: LeaseAsk) -> Response:
    """The whole resource request, where each line comes from, what speaks against it, and its cost. Nothing is sent."""
    person = await person_of(request)
    details, number = await service_of(request).annexes.plans.plan_lease(name, _read_wanted(ask), person)
    return json_response(plan_view(name, number, details))


@router.get("/{name}", response_model=AnnexView, responses=LOOK)
async def annex(request: Request, name: Name) -> Response:
    """One annex, with the leases that have not ended; or those that are named."""
    return json_response(
        annex_view(await service_of(request).annexes.status.annex_state(name, await person_of(request)))
    )


@router.post("/{name}/leases", status_code=201, response_model=LeaseView, **described.describe_keyed(CHANGE))
async def add(request: Request, name: Name, ask: LeaseAsk, key: Key) -> Response:
    """Put more nodes under the same name."""
    return await _lease(request, name, ask, key, more=True)


@router.post("/{name}/cancel", response_model=AnnexView, responses=CHANGE)
async def cancel(request: Request, name: Name) -> Response:
    """Take back resource requests that still wait."""
    person = await person_of(request)
    annex, leases = await service_of(request).annexes.leases.cancel_lease(name, person)
    return json_response(annex_view(await service_of(request).annexes.status.state_of_leases(annex, leases)))


@router.post("/{name}/shutdown", response_model=AnnexView, responses=CHANGE)
async def shutdown(request: Request, name: Name, ask: ShutdownAsk | None = None) -> Response:
    """End leases, whatever they are doing; or only some nodes of one. Their jobs wait again."""
    person, service = await person_of(request), service_of(request)
    if ask and ask.nodes:
        annex, lease = await service.annexes.shrinking.give_back(name, ask.nodes, person)
        return json_response(annex_view(await service.annexes.status.state_of_leases(annex, [lease])))
    annex, leases = await service.annexes.leases.shutdown(name, person)
    return json_response(annex_view(await service.annexes.status.state_of_leases(annex, leases)))


@router.post("/{name}/drain", response_model=AnnexView, responses=CHANGE)
async def drain(request: Request, name: Name, ask: DrainAsk | None = None) -> Response:
    """Let leases, or some nodes of one, take no new jobs; each node ends when those that run on it are done."""
    person, service = await person_of(request), service_of(request)
    annex, leases = await service.annexes.drains.drain_annex(name, ask.nodes if ask else (), person)
    return json_response(annex_view(await service.annexes.status.state_of_leases(annex, leases)))


@router.post("/{name}/undrain", response_model=AnnexView, responses=CHANGE)
async def undrain(request: Request, name: Name, ask: DrainAsk | None = None) -> Response:
    """Let them take jobs again, if they have not ended yet."""
    person, service = await person_of(request), service_of(request)
    annex, leases = await service.annexes.drains.undrain_annex(name, ask.nodes if ask else (), person)
    return json_response(annex_view(await service.annexes.status.state_of_leases(annex, leases)))


@router.post("/{name}/rename", response_model=AnnexView, responses=CHANGE)
async def rename(request: Request, name: Name, ask: RenameAsk) -> Response:
    """Call it otherwise."""
    person = await person_of(request)
    return await _view(request, await service_of(request).annexes.registry.rename(name, ask.name, person), person)


@router.post("/{name}/open", response_model=AnnexView, responses=CHANGE)
async def open_(request: Request, name: Name) -> Response:
    """Let it run all its owner's jobs, also those that don't name it."""
    person = await person_of(request)
    return await _view(request, await service_of(request).annexes.sharing.open_annex(name, person, wide=True), person)


@router.post("/{name}/close", response_model=AnnexView, responses=CHANGE)
async def close(request: Request, name: Name, ask: CloseAsk | None = None) -> Response:
    """Let it run only the jobs that name it; or no jobs at all, but sessions, whose times are then booked."""
    person, sessions = await person_of(request), bool(ask and ask.to_jobs)
    annex = await service_of(request).annexes.sharing.open_annex(name, person, wide=False, sessions=sessions)
    return await _view(request, annex, person)


@router.post("/{name}/share", response_model=AnnexView, responses=CHANGE)
async def share(request: Request, name: Name, ask: GuestAsk) -> Response:
    """Let someone run jobs on it: in containers only, as its owner's account on the system."""
    person = await person_of(request)
    return await _view(request, await service_of(request).annexes.registry.share(name, ask.guest, person), person)


@router.post("/{name}/unshare", response_model=AnnexView, responses=CHANGE)
async def unshare(request: Request, name: Name, ask: GuestAsk) -> Response:
    """Let them no longer."""
    person = await person_of(request)
    return await _view(request, await service_of(request).annexes.sharing.unshare(name, ask.guest, person), person)


@router.get("/{name}/history", response_model=AnnexHistory, responses=LOOK)
async def history(request: Request, name: Name) -> Response:
    """All leases that it ever had, and what happened to them."""
    state, events = await service_of(request).annexes.status.annex_history(name, await person_of(request))
    return json_response(AnnexHistory(annex=annex_view(state), events=tuple(map(event_view, events))))


def _read_wanted(ask: LeaseAsk) -> WantedLease:
    return WantedLease(details_of(ask.details), ask.template, ask.like)


async def _lease(request: Request, name: str, ask: LeaseAsk, key: str | None, *, more: bool) -> Response:
    person, service = await person_of(request), service_of(request)
    annex, lease, _ = await service.annexes.leases.lease(name, _read_wanted(ask), person, more=more, key=key)
    state = await service.annexes.status.state_of_leases(annex, [lease])
    return json_response(lease_view(annex, state.leases[0]), 201)


async def _view(request: Request, annex: Annex, person: Person) -> Response:
    return json_response(annex_view(await service_of(request).annexes.status.annex_state(annex.name, person)))
