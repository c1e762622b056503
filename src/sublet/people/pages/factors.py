"""The page of one's second factor."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sublet.api.people import host_of, service_of
from sublet.kernel.errors import NotFound, SubletError, WrongCode
from sublet.people.model.qr_code import QUIET, draw_path, make_code
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor


async def look(request: Request) -> Response:
    """Show whether it is on, and how to change that."""
    return await _page(request, await visitor(request))


async def change(request: Request) -> Response:
    """Begin, confirm, or turn it off."""
    who, form = await read_form(request)
    service, host, code = service_of(request), host_of(request), form.get("code", "")[:100]
    act = request.path_params["change"]
    try:
        if act == "begin":
            begun = await service.people.factors.begin_factor(who.person)
            return await _page(request, who, secret=begun.secret, uri=begun.uri)
        if act == "confirm":
            return await _page(request, who, codes=await service.people.factors.confirm_factor(who.person, code, host))
        if act == "off":
            await service.people.factors.remove_factor(who.person, code, host=host)
            return await _page(request, who)
    except WrongCode as error:
        if act == "confirm" and await service.people.factors.factor(who.person):
            return await _page(request, who)  # the form was sent again
        uri = form.get("uri", "")
        again = {"secret": form.get("secret", ""), "uri": uri} if uri.startswith("otpauth://totp/") else {}
        return await _page(request, who, error, **again)
    raise NotFound("There is no such page.", hint="Go back.")


async def _page(request: Request, who: Visitor, wrong: SubletError | None = None, **values: object) -> Response:
    service = service_of(request)
    on = await service.people.factors.factor(who.person)
    shown = {"secret": "", "uri": "", "codes": ()} | values
    obstacle = (
        None
        if on or shown["secret"] or shown["codes"]
        else await service.people.factors.find_factor_obstacle(who.person)
    )
    status, text = (wrong.status, wrong.sentences) if wrong else (200, "")
    code = make_code(str(shown["uri"])) if shown["uri"] else None
    picture = {"path": draw_path(code), "size": len(code) + 2 * QUIET} if code else None
    return page(request, "factor.html", who, status, on=on, wrong=text, obstacle=obstacle, picture=picture, **shown)
