"""The page of notifications: the list, and a form to add one."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from sublet.api.people import host_of, service_of
from sublet.booking.model.amounts import parse_duration
from sublet.kernel.errors import SubletError
from sublet.notices.model.hooks import MAILTO, STATES, WORDS, Delivery, Hook
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import Confirmation, confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import change_of, read_form, visitor

ON = "on."  # the prefix of the checkboxes' names


@dataclass(frozen=True, slots=True)
class Done:
    """A message about what was done, and a secret that is shown only now."""

    words: str
    secret: str = ""


async def look(request: Request) -> Response:
    """Show the visitor's hooks."""
    who = await visitor(request)
    return await _page(request, who, {"session": request.query_params.get("session", "")})


async def _page(
    request: Request,
    who: Visitor,
    form: dict[str, str],
    *,
    done: Done | None = None,
    wrong: SubletError | None = None,
) -> Response:
    service = service_of(request)
    listed = await service.notices.hooks.hooks(who.person)
    return page(
        request,
        "hooks.html",
        who,
        wrong.status if wrong else 200,
        hooks=[(hook, *state_of(hook, deliveries[0] if deliveries else None)) for hook, deliveries in listed],
        addresses=sorted(await service.notices.telling.own_addresses(who.person)),
        words=WORDS,
        states=STATES,
        form=form,
        done=done,
        wrong=wrong,
    )


def state_of(hook: Hook, last: Delivery | None) -> tuple[str, str]:
    """Return the tone and the words for the outcome of the last delivery."""
    if hook.trouble:
        return "bad", f"given up: {hook.trouble}"
    if last is None or not last.answer:
        return "idle", "nothing sent yet"
    return ("open", f"retrying: {last.answer}") if last.due else ("good", f"sent: {last.answer}")


async def add(request: Request) -> Response:
    """Add a hook."""
    who, form = await read_form(request)
    return await _do(request, who, form, _add(service_of(request), who.person, form, host_of(request)))


async def change(request: Request) -> Response:
    """Remove a hook, or send it a test."""
    act = change_of(request, CHANGES)
    who, form = await read_form(request)
    if request.path_params["change"] == "remove" and not is_confirmed(form):
        hook = await service_of(request).notices.hooks.hook(who.person, request.path_params["id"])
        return confirm_page(request, who, _question(hook), form)
    acting = act(service_of(request), who.person, request.path_params["id"], host_of(request))
    return await _do(request, who, {}, acting)


async def _do(request: Request, who: Visitor, form: dict[str, str], acting: Awaitable[Done]) -> Response:
    try:
        return await _page(request, who, {}, done=await acting)
    except SubletError as error:
        return await _page(request, who, form, wrong=error)


async def _add(service: Service, person: Person, form: dict[str, str], host: str) -> Done:
    address = form.get("address", "").strip()
    mail = "@" in address and ":" not in address
    lasts = form.get("expires", "").strip()
    hook, secret = await service.notices.hooks.add_hook(
        person,
        f"{MAILTO}{address}" if mail else address,
        session=form.get("session", "").strip(),
        events=[name.removeprefix(ON) for name in form if name.startswith(ON)],
        lasts=parse_duration(lasts) if lasts else None,
        host=host,
    )
    return Done(f"{hook.address.removeprefix(MAILTO)} will be notified.", secret)


async def _remove(service: Service, person: Person, id: str, host: str) -> Done:
    hook = await service.notices.hooks.remove_hook(person, id, host)
    return Done(f"{hook.address.removeprefix(MAILTO)} will not be notified any more.")


def _question(hook: Hook) -> Confirmation:
    address = hook.address.removeprefix(MAILTO)
    scope = f"the session {hook.session[:8]}" if hook.session else "your sessions"
    secret = "" if hook.by_mail else " Its signing secret can't be restored."
    effects = (f"{address} gets no more notifications about {scope}.{secret}",)
    return Confirmation(f"Remove {address}?", effects, "Remove", "/web/hooks")


async def _test(service: Service, person: Person, id: str, host: str) -> Done:
    return Done(f"It took it: {await service.notices.hooks.test_hook(person, id)}.")


CHANGES = {"remove": _remove, "test": _test}
