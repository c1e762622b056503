"""Takes a hint of an answer: asks again as the hint advises."""

from __future__ import annotations

import json
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.documents.short import is_short
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.offer import HINT, Reason
from sublet.booking.model.session import OfferSet
from sublet.booking.pages.form import short_of, values_of
from sublet.booking.pages.nearest import heed_reasons
from sublet.kernel.document import parse_document
from sublet.web.reading import read_form


async def take(request: Request) -> Response:
    """Ask again with a hint applied, in place of the offers that came with it."""
    who, _ = await read_form(request)
    service = service_of(request)
    earlier = await service.asking.offerset(request.path_params["id"], who.person)
    hints = [reason for reason in earlier.reasons if reason.kind == HINT]
    number: int = request.path_params["number"]
    if not 1 <= number <= len(hints):
        raise HTTPException(404)
    body = _write_request(earlier, hints[number - 1])
    if body is None:  # if neither form can express the request, its owner edits it
        return RedirectResponse(f"/web/ask?from={earlier.id}", 303)
    asked = await service.asking.read(body, "application/json", who.person)
    offerset = await service.asking.ask(who.person, replace(asked, precedence=Precedence(instead_of=earlier.id)))
    return RedirectResponse(f"/web/offersets/{offerset.id}", 303)


def _write_request(earlier: OfferSet, hint: Reason) -> bytes | None:
    document = parse_document(earlier.document.encode(), earlier.content_type)
    if is_short(document):
        return json.dumps({**document, hint.field: hint.nearest}).encode()
    values = values_of(earlier.request)
    return json.dumps(short_of(heed_reasons(values, [hint])[0])).encode() if values is not None else None
