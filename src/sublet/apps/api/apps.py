"""Apps under /v1: proposed by anyone who is signed in, decided on by reviewers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.apps.views.apps import (
    AppList,
    ApproveAsk,
    AppView,
    ProposeAsk,
    RefuseAsk,
    ReviewView,
    RevokeAsk,
    RevokedView,
    UpstreamView,
    VersionView,
)
from sublet.apps.views.convert import app_view, change_view, file_view, version_view

router = APIRouter(prefix="/v1/apps", tags=["Apps"])

Name = Annotated[str, Path(description="The app's name.")]
Number = Annotated[int, Path(ge=1, le=10**8, description="The version's number.")]
Against = Annotated[int | None, Query(ge=1, le=10**8, description="Compare with this version, not the last approved.")]
LOOK = described.problems(400, 401, 403, 404, 409)
DECIDE = described.problems(400, 401, 403, 404, 409)


@router.get("", response_model=AppList, responses=described.problems(401))
async def apps(request: Request) -> Response:
    """The apps that you may run; their authors and reviewers see all versions."""
    listed = await service_of(request).apps.catalogue.apps(await person_of(request))
    return json_response(AppList(items=tuple(app_view(each.app, each.versions) for each in listed)))


@router.post("", status_code=201, response_model=VersionView, responses=described.problems(400, 401, 404, 409, 503))
async def propose(request: Request, ask: ProposeAsk) -> Response:
    """Bring a git repository before the reviewers, as it is now; the same again is the same version."""
    person = await person_of(request)
    made = await service_of(request).apps.proposing.propose(
        person,
        ask.repository,
        branch=ask.branch,
        commit=ask.commit,
        name=ask.name,
        maintainer=ask.maintainer,
        host=host_of(request),
    )
    return json_response(version_view(made), 201)


@router.get("/{name}", response_model=AppView, responses=described.problems(401, 404))
async def app(request: Request, name: Name) -> Response:
    """One app."""
    known = await service_of(request).apps.catalogue.app(name, await person_of(request))
    return json_response(app_view(known.app, known.versions))


@router.get("/{name}/{number}", response_model=ReviewView, responses=LOOK)
async def review(request: Request, name: Name, number: Number, against: Against = None) -> Response:
    """A version with its files, and what is new in it since the last that was approved."""
    reviewed = await service_of(request).apps.reviewing.review(f"{name}@{number}", await person_of(request), against)
    view = ReviewView(
        version=version_view(reviewed.version),
        files=tuple(map(file_view, reviewed.files)),
        base=version_view(reviewed.base) if reviewed.base else None,
        changes=tuple(map(change_view, reviewed.changes)),
        manifest_diff=reviewed.manifest_diff,
    )
    return json_response(view)


@router.get("/{name}/{number}/upstream", response_model=UpstreamView, responses=described.problems(400, 401, 404, 503))
async def upstream(request: Request, name: Name, number: Number) -> Response:
    """Whether its branch has moved on or was rewritten since; that changes nothing of what is run."""
    state = await service_of(request).apps.proposing.check_upstream(f"{name}@{number}", await person_of(request))
    version = state.version
    return json_response(UpstreamView(version=version.name, commit=version.commit, tip=state.tip, words=state.words))


@router.post("/{name}/{number}/approve", response_model=VersionView, responses=DECIDE)
async def approve(request: Request, name: Name, number: Number, ask: ApproveAsk) -> Response:
    """Approve a version; `tree` is the hash of the files that the reviewer has seen."""
    person, service = await person_of(request), service_of(request)
    return json_response(
        version_view(
            await service.apps.reviewing.approve(f"{name}@{number}", person, ask.tree, ask.why, host_of(request))
        )
    )


@router.post("/{name}/{number}/refuse", response_model=VersionView, responses=DECIDE)
async def refuse(request: Request, name: Name, number: Number, ask: RefuseAsk) -> Response:
    """Reject a version."""
    person, service = await person_of(request), service_of(request)
    return json_response(
        version_view(await service.apps.reviewing.refuse(f"{name}@{number}", person, ask.why, host_of(request)))
    )


@router.post("/{name}/{number}/revoke", response_model=RevokedView, responses=DECIDE)
async def revoke(request: Request, name: Name, number: Number, ask: RevokeAsk) -> Response:
    """Revoke an approved version; owners of its sessions are notified, and `cancel` ends these sessions."""
    person, service = await person_of(request), service_of(request)
    done = await service.apps.reviewing.revoke(
        f"{name}@{number}", person, ask.why, cancel=ask.cancel, host=host_of(request)
    )
    return json_response(RevokedView(version=version_view(done.version), sessions=done.sessions))
