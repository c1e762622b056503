"""A gateway's people over HTTP: operators see and change them, and everyone sees themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sublet.access.model.access_words import rule_text
from sublet.access.people_work import Work
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import base_of, host_of, person_of, service_of
from sublet.booking.views.convert import session_view
from sublet.people.people import Profile
from sublet.people.views.people import (
    BlockAsk,
    IdentityAsk,
    IdentityView,
    PersonAsk,
    PersonList,
    PersonView,
    RoleAsk,
    WorkView,
)

router = APIRouter(prefix="/v1/people", tags=["People"])
CHANGE = described.problems(400, 401, 403, 404, 409)
MOST = 1000


@router.get("", response_model=PersonList, responses=described.problems(400, 401, 403, 409))
async def people(
    request: Request,
    role: str = "",
    blocked: bool = False,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Response:
    """The people that this service knows, by name; optionally only those with a role, or those who are blocked."""
    person = await person_of(request)
    profiles = await service_of(request).people.directory.people(
        person, role, blocked=blocked, after=after, limit=limit
    )
    last = profiles[-1].known.name if len(profiles) == limit else None
    return json_response(PersonList(items=tuple(person_view(profile) for profile in profiles), next=last))


@router.post("", status_code=201, response_model=PersonView, responses=described.problems(400, 401, 403, 409))
async def add(request: Request, ask: PersonAsk) -> Response:
    """Know someone before they come; they can sign in whatever the patterns say."""
    person = await person_of(request)
    return json_response(
        person_view(
            await service_of(request).people.directory.add_person(person, ask.address, ask.role, host_of(request))
        ),
        201,
    )


@router.get("/{name}", response_model=PersonView, responses=CHANGE)
async def show(request: Request, name: str) -> Response:
    """One person, by any of their addresses, with their active sessions; without being an operator, only yourself."""
    profile, work = await service_of(request).people.work.work_of(await person_of(request), name)
    return json_response(replace(person_view(profile), work=work_view(work, base_of(request))))


@router.delete("/{name}", status_code=204, responses=CHANGE)
async def remove(request: Request, name: str) -> Response:
    """Delete a person, with their identities and tokens; records of what they ran are kept."""
    await service_of(request).people.directory.remove_person(await person_of(request), name, host_of(request))
    return Response(status_code=204)


@router.put("/{name}/role", response_model=PersonView, responses=CHANGE)
async def role(request: Request, name: str, ask: RoleAsk) -> Response:
    """Give someone another part, from now on."""
    person = await person_of(request)
    return json_response(
        person_view(await service_of(request).people.directory.set_role(person, name, ask.role, host_of(request)))
    )


@router.post("/{name}/block", response_model=PersonView, responses=CHANGE)
async def block(request: Request, name: str, ask: BlockAsk) -> Response:
    """Let someone in no more: neither their tokens nor their browsers count, from now on.

    What they have under way goes on; with `cancel` it is cancelled, and they are told the same reason.
    """
    person, host = await person_of(request), host_of(request)
    done = await service_of(request).people.work.block_person(person, name, ask.why, cancel=ask.cancel, host=host)
    view = replace(person_view(done.profile), work=work_view(done.work, base_of(request)))
    return json_response(replace(view, cancelled=tuple(session.id for session in done.cancelled)))


@router.post("/{name}/unblock", response_model=PersonView, responses=CHANGE)
async def unblock(request: Request, name: str) -> Response:
    """Unblock someone."""
    person = await person_of(request)
    return json_response(
        person_view(await service_of(request).people.directory.unblock(person, name, host_of(request)))
    )


@router.post("/{name}/identities", status_code=201, response_model=PersonView, responses=CHANGE)
async def add_identity(request: Request, name: str, ask: IdentityAsk) -> Response:
    """Know someone by another name too."""
    person = await person_of(request)
    done = await service_of(request).people.directory.add_identity(person, name, ask.kind, ask.value, host_of(request))
    return json_response(person_view(done), 201)


@router.delete("/{name}/identities", response_model=PersonView, responses=CHANGE)
async def remove_identity(request: Request, name: str, kind: str, value: str) -> Response:
    """Know someone by that name no more."""
    person = await person_of(request)
    return json_response(
        person_view(
            await service_of(request).people.directory.remove_identity(person, name, kind, value, host_of(request))
        )
    )


def work_view(work: Work, base: str) -> WorkView:
    """Return a person's activity as its view."""
    return WorkView(
        running=work.running,
        waiting=work.waiting,
        held=work.held,
        tokens=work.tokens,
        rules=tuple(rule_text(rule) for rule in work.rules),
        sessions=tuple(session_view(session, base) for session in work.sessions),
    )


def person_view(profile: Profile) -> PersonView:
    """Return a person's profile as its view."""
    known = profile.known
    return PersonView(
        name=known.name,
        role=known.role.value,
        created=known.created,
        seen=known.seen,
        blocked=known.blocked is not None,
        why=known.blocked or "",
        by=known.by,
        second_factor=profile.has_factor,
        identities=tuple(
            IdentityView(kind=identity.kind, value=identity.value, created=identity.created)
            for identity in profile.identities
        ),
        groups=profile.groups,
    )
