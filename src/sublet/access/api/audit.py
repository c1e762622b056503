"""The audit log over HTTP: operators see all of it, others their own actions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from sublet.access.audit import Sought
from sublet.access.views.audit import AuditPage, AuditView
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest
from sublet.kernel.views import read_instant

router = APIRouter(prefix="/v1/audit", tags=["Access"])
TYPES = {"jsonl": "application/jsonl", "csv": "text/csv"}


async def sought(  # async, as FastAPI would run a sync one in a thread
    person: Annotated[str, Query(description="Who did it.")] = "",
    action: Annotated[str, Query(description="An action, or the beginning of one, as in `rule.`.")] = "",
    noun: Annotated[str, Query(description="What kind of thing it was done to.")] = "",
    name: Annotated[str, Query(description="Which thing.")] = "",
    since: Annotated[str, Query(description="Not before this instant, as in 2026-11-01T00:00:00Z.")] = "",
    until: Annotated[str, Query(description="Before this instant.")] = "",
) -> Sought:
    """Read the search from the query."""
    return Sought(person, action, noun, name, _instant(since, "since"), _instant(until, "until"))


Wanted = Annotated[Sought, Depends(sought)]


@router.get("", response_model=AuditPage, responses=described.problems(400, 401, 403))
async def audit(
    request: Request,
    wanted: Wanted,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """What was done, in the order in which it was written down, a page at a time."""
    entries = await service_of(request).access.audit.audit(
        await person_of(request), wanted, after=after, limit=limit + 1
    )
    items = tuple(audit_view(entry) for entry in entries[:limit])
    return json_response(AuditPage(items=items, next=items[-1].id if len(entries) > limit else None))


@router.get("/export", response_class=Response, **described.EXPORT)
async def export(
    request: Request,
    wanted: Wanted,
    format: Annotated[Literal["jsonl", "csv"], Query(description="Lines of JSON, or CSV.")] = "jsonl",
) -> Response:
    """All of it as one file, made while it is sent."""
    person, service = await person_of(request), service_of(request)
    await service.access.audit.audit(person, wanted, limit=1)  # a refusal must come now, not in the middle of the file
    headers = {"content-disposition": f'attachment; filename="audit.{format}"', "x-content-type-options": "nosniff"}
    pieces = service.access.audit.export_audit(person, wanted, format)
    return StreamingResponse(pieces, media_type=TYPES[format], headers=headers)


def audit_view(entry: AuditEntry) -> AuditView:
    """Return an entry as its view."""
    return AuditView(
        id=entry.id,
        time=entry.time,
        person=entry.person,
        action=entry.action,
        noun=entry.noun,
        name=entry.name,
        host=entry.host,
        detail=dict(entry.detail),
    )


def _instant(text: str, field: str) -> datetime | None:
    if not text:
        return None
    try:
        return read_instant(text)
    except (ValueError, OverflowError) as error:
        raise BadRequest(detail=f"`{field}` is no instant, as 2026-11-01T00:00:00Z is.") from error
