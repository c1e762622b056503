"""A gateway's groups over HTTP, for operators."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.people.model.people import Group
from sublet.people.views.people import GroupAsk, GroupList, GroupView

router = APIRouter(prefix="/v1/groups", tags=["People"])
CHANGE = described.problems(400, 401, 403, 404, 409)


@router.get("", response_model=GroupList, responses=described.problems(401, 403, 409))
async def groups(request: Request) -> Response:
    """All groups, by name."""
    listed = await service_of(request).people.groups.groups(await person_of(request))
    return json_response(GroupList(items=tuple(map(_view, listed))))


@router.post("", status_code=201, response_model=GroupView, responses=described.problems(400, 401, 403, 409))
async def add(request: Request, ask: GroupAsk) -> Response:
    """A new group, with nobody in it."""
    person = await person_of(request)
    return json_response(
        _view(await service_of(request).people.groups.add_group(person, ask.name, ask.note, host_of(request))), 201
    )


@router.get("/{name}", response_model=GroupView, responses=described.problems(401, 403, 404, 409))
async def show(request: Request, name: str) -> Response:
    """One group, with its members."""
    return json_response(_view(await service_of(request).people.groups.group(await person_of(request), name)))


@router.delete("/{name}", status_code=204, responses=described.problems(401, 403, 404, 409))
async def remove(request: Request, name: str) -> Response:
    """Delete a group."""
    await service_of(request).people.groups.remove_group(await person_of(request), name, host_of(request))
    return Response(status_code=204)


@router.put("/{name}/members/{member}", response_model=GroupView, responses=CHANGE)
async def join(request: Request, name: str, member: str) -> Response:
    """Take someone into a group; they need not have come yet."""
    person = await person_of(request)
    return json_response(
        _view(await service_of(request).people.groups.join_group(person, name, member, host_of(request)))
    )


@router.delete("/{name}/members/{member}", response_model=GroupView, responses=CHANGE)
async def leave(request: Request, name: str, member: str) -> Response:
    """Let someone go from a group."""
    person = await person_of(request)
    return json_response(
        _view(await service_of(request).people.groups.leave_group(person, name, member, host_of(request)))
    )


def _view(group: Group) -> GroupView:
    return GroupView(name=group.name, note=group.note, created=group.created, members=group.members)
