"""The page on which operators list, add, block and unblock people, change their roles and remove second factors."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import host_of, service_of
from sublet.kernel.errors import OperatorsOnly, SubletError
from sublet.people.model.people import Role
from sublet.people.model.person import Person
from sublet.people.people import Profile
from sublet.service import Service
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import change_of, read_form, visitor

HERE = "/web/people"
MOST = 200  # people per page
BLOCKED = "blocked"  # a filter beside the roles


async def look(request: Request) -> Response:
    """List the known people, by name; `after` is where the previous page ended."""
    return await _page(request, await visitor(request))


async def _page(
    request: Request, who: Visitor, wrong: SubletError | None = None, form: dict[str, str] | None = None
) -> Response:
    service = service_of(request)
    service.authority.require_operator(who.person)
    sought = {field: request.query_params.get(field, "").strip() for field in ("name", "only", "after")}
    profiles: Sequence[Profile] = ()
    try:
        profiles = await _find_people(service, who.person, **sought)
    except SubletError as error:
        wrong = wrong or error
    given = {field: text for field, text in sought.items() if text and field != "after"}
    return page(
        request,
        "people.html",
        who,
        wrong.status if wrong else 200,
        people=profiles[:MOST],
        more=profiles[MOST - 1].known.name if len(profiles) > MOST else "",
        sought=sought,
        given=given,
        watched=f"{HERE}?{urlencode({field: text for field, text in sought.items() if text})}".rstrip("?"),
        roles=[role.value for role in Role],
        filters=[*(role.value for role in Role), BLOCKED],
        form=form or {},
        wrong=wrong,
    )


async def _find_people(service: Service, person: Person, name: str, only: str, after: str) -> Sequence[Profile]:
    if name:
        return [await service.people.directory.profile(person, name)]
    role = "" if only == BLOCKED else only
    return await service.people.directory.people(person, role, blocked=only == BLOCKED, after=after, limit=MOST + 1)


async def change(request: Request) -> Response:
    """Add someone, change their role, block or unblock them, or remove a second factor that they lost."""
    act = change_of(request, CHANGES)
    who, form = await read_form(request)
    try:
        await act(service_of(request), who.person, form, host_of(request))
    except OperatorsOnly:
        raise
    except SubletError as error:
        return await _page(request, who, error, form)
    return RedirectResponse(HERE, 303)


async def _add(service: Service, person: Person, form: dict[str, str], host: str) -> None:
    await service.people.directory.add_person(person, form.get("name", "").strip(), form.get("role", ""), host)


async def _role(service: Service, person: Person, form: dict[str, str], host: str) -> None:
    await service.people.directory.set_role(person, form.get("name", ""), form.get("role", ""), host)


async def _block(service: Service, person: Person, form: dict[str, str], host: str) -> None:
    cancel = form.get("cancel") == "yes"
    await service.people.work.block_person(person, form.get("name", ""), form.get("why", ""), cancel=cancel, host=host)


async def _unblock(service: Service, person: Person, form: dict[str, str], host: str) -> None:
    await service.people.directory.unblock(person, form.get("name", ""), host)


async def _reset_factor(service: Service, person: Person, form: dict[str, str], host: str) -> None:
    await service.people.factors.reset_factor(person, form.get("name", ""), host=host)


CHANGES = {"add": _add, "role": _role, "block": _block, "unblock": _unblock, "reset-factor": _reset_factor}
