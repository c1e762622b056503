"""Usage as a page and as a download, and the accounts with their load."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sublet.access.api.usage import CSV, csv_text
from sublet.access.model.usage import quarter_of
from sublet.access.views.usage import UsageReport
from sublet.access.views.usage_convert import usage_report
from sublet.api.people import service_of
from sublet.kernel.errors import BadRequest
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import visitor

FIELDS = {"quarter": "Quarter", "platform": "Account", "person": "Person"}


async def look(request: Request) -> Response:
    """Show the visitor's own usage, or everybody's for an operator."""
    who = await visitor(request)
    service = service_of(request)
    typed, wrong = _read_filters(request, who), None
    try:
        report = await _report(request, who, typed)
    except BadRequest as error:
        wrong, typed = error, {**typed, "quarter": ""}
        report = await _report(request, who, typed)
    shown = {**typed, "quarter": typed["quarter"] or quarter_of(service.now())}
    given = {field: text for field, text in typed.items() if text}
    places = [account for account in await service.access.accounts.accounts(who.person) if account.usable]
    values = {"report": report, "typed": shown, "given": given, "fields": FIELDS, "accounts": places, "wrong": wrong}
    return page(request, "usage.html", who, wrong.status if wrong else 200, **values)


async def export(request: Request) -> Response:
    """Download the usage as CSV."""
    who = await visitor(request)
    text = csv_text(await _report(request, who, _read_filters(request, who)))
    return Response(text, media_type=CSV, headers={"content-disposition": 'attachment; filename="usage.csv"'})


def _read_filters(request: Request, who: Visitor) -> dict[str, str]:
    typed = {field: request.query_params.get(field, "").strip() for field in FIELDS}
    return typed if who.person.operator else {**typed, "person": ""}


async def _report(request: Request, who: Visitor, typed: dict[str, str]) -> UsageReport:
    used = await service_of(request).access.usage.usage(
        who.person, of=typed["person"].lower(), platform=typed["platform"], quarter=typed["quarter"]
    )
    return usage_report(used.since, used.until, used.rows)
