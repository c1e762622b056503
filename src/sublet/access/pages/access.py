"""The pages of access: what a visitor may use, requests for access, and an operator's decision."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.access.model.access import NOUNS
from sublet.access.model.access_words import describe_rest, limits_text, why
from sublet.access.pages.limits import LABELS, read_grant
from sublet.api.people import host_of, service_of
from sublet.kernel.errors import SubletError
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor

HERE = "/web/access"
SHOWN = 20  # of the visitor's own requests
TONES = {"open": "open", "granted": "good", "refused": "bad"}


async def look(request: Request) -> Response:
    """Show what the visitor may use."""
    return await _page(request, await visitor(request))


async def _page(request: Request, who: Visitor, wrong: SubletError | None = None, said: str = "") -> Response:
    service = service_of(request)
    service.authority.require_gateway()
    standings = await service.access.rules.standing(who.person)
    requests = await service.access.requests.access_requests(who.person)
    waiting = [item for item in requests if item.state == "open"] if who.person.operator else []
    own = [item for item in requests if item.person == who.person.name][:SHOWN]
    return page(
        request,
        "access.html",
        who,
        wrong.status if wrong else 200,
        standings=standings,
        waiting=waiting,
        own=own,
        wrong=wrong,
        said=said,
        why=why,
        left=lambda item: describe_rest(item.decision.limits, item.use) if item.decision.allowed else "",
        limits_text=limits_text,
        state_tones=TONES,
    )


async def ask(request: Request) -> Response:
    """Request access."""
    who, form = await read_form(request)
    target, reason = form.get("name", ""), form.get("why", "")
    noun, _, name = target.partition(":")
    noun, name = (noun, name) if noun in NOUNS else ("", target)
    try:
        await service_of(request).access.requests.ask_access(who.person, noun, name, reason, host_of(request))
    except SubletError as error:
        return await _page(request, who, error, reason)
    return RedirectResponse(HERE, 303)


async def one(request: Request) -> Response:
    """Show a request; this decides nothing."""
    return await _one(request, await visitor(request), {})


async def _one(request: Request, who: Visitor, form: dict[str, str], wrong: SubletError | None = None) -> Response:
    service = service_of(request)
    asked = await service.access.requests.access_request(request.path_params["id"], who.person)
    standings = await service.access.rules.standing(who.person, asked.person) if who.person.operator else ()
    stands = next((s for s in standings if (s.decision.noun, s.decision.name) == (asked.noun, asked.name)), None)
    return page(
        request,
        "access_request.html",
        who,
        wrong.status if wrong else 200,
        found=asked,
        stands=stands,
        wrong=wrong,
        form=form,
        labels=LABELS,
        why=why,
        limits_text=limits_text,
        state_tones=TONES,
    )


async def decide(request: Request) -> Response:
    """Grant or refuse a request, by a form with an anti-forgery token."""
    if request.path_params["change"] not in ("grant", "refuse"):
        raise HTTPException(404)
    who, form = await read_form(request)
    id, host = request.path_params["id"], host_of(request)
    try:
        service, answer = service_of(request), form.get("answer", "").strip()
        if request.path_params["change"] == "grant":
            await service.access.requests.grant_access(
                id, who.person, **read_grant(form, service.now()), answer=answer, host=host
            )
        else:
            await service.access.requests.refuse_access(id, who.person, answer, host)
    except SubletError as error:
        return await _one(request, who, form, error)
    return RedirectResponse(f"{HERE}/requests/{id}", 303)
