"""The audit log as a page, and as a download."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sublet.access.api.audit import TYPES
from sublet.access.audit import Sought
from sublet.api.people import service_of
from sublet.kernel.errors import OperatorsOnly
from sublet.web.drawing import clock_of, page
from sublet.web.entry import Visitor
from sublet.web.reading import visitor

MOST = 200  # entries per page
FIELDS = {"person": "Who", "action": "Action", "noun": "Target", "name": "Name"}
DAYS = {"since": "From", "until": "To"}


async def look(request: Request) -> Response:
    """Show entries, newest first; `before` is where the previous page ended."""
    who = await _operator(request)
    typed = {field: request.query_params.get(field, "").strip() for field in (*FIELDS, *DAYS)}
    last = request.query_params.get("before", "")
    before = int(last) if last.isdecimal() and len(last) < 16 else 0
    sought = _sought(typed, clock_of(request).zone)
    entries = await service_of(request).access.audit.audit(who.person, sought, before=before, limit=MOST + 1)
    more = entries[MOST - 1].id if len(entries) > MOST else None
    given = {field: text for field, text in typed.items() if text}
    return page(
        request,
        "audit.html",
        who,
        entries=entries[:MOST],
        typed=typed,
        given=given,
        more=more,
        fields=FIELDS,
        days=DAYS,
    )


async def export(request: Request) -> Response:
    """Download all matching entries."""
    who, form = await _operator(request), request.query_params.get("format", "csv")
    if form not in TYPES:
        raise HTTPException(404)
    typed = {field: request.query_params.get(field, "").strip() for field in (*FIELDS, *DAYS)}
    pieces = service_of(request).access.audit.export_audit(who.person, _sought(typed, clock_of(request).zone), form)
    headers = {"content-disposition": f'attachment; filename="audit.{form}"'}
    return StreamingResponse(pieces, media_type=TYPES[form], headers=headers)


async def _operator(request: Request) -> Visitor:
    who = await visitor(request)
    if not who.person.operator:
        raise OperatorsOnly
    return who


def _sought(typed: dict[str, str], zone: ZoneInfo) -> Sought:
    until = _day(typed["until"], zone)
    last = until + timedelta(days=1) if until else None
    return Sought(typed["person"], typed["action"], typed["noun"], typed["name"], _day(typed["since"], zone), last)


def _day(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the start of a day in the page's time zone, as a browser's date field writes it, or None."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone).astimezone(UTC)
    except ValueError:
        return None
