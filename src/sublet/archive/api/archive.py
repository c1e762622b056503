"""The archive's endpoints: a person sees the records of their own sessions, an operator everybody's."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.archive.archive import ArchiveFilter
from sublet.archive.model.records import COLUMNS, NamedRecord
from sublet.archive.views.archive import (
    ArchivePage,
    CalibrationList,
    CalibrationView,
    ErasedView,
    SessionRecordView,
)
from sublet.kernel.errors import BadRequest
from sublet.kernel.views import read_instant

router = APIRouter(prefix="/v1/archive", tags=["Archive"])
TYPES = {"jsonl": "application/jsonl", "csv": "text/csv"}


async def read_filter(  # async, because FastAPI would run it in a thread otherwise
    person: Annotated[str, Query(description="Only of this person; operators may name others.")] = "",
    platform: Annotated[str, Query(description="Only of this platform.")] = "",
    since: Annotated[str, Query(description="Asked for at this instant or later, as 2026-11-01T00:00:00Z.")] = "",
    until: Annotated[str, Query(description="Asked for before this instant.")] = "",
) -> ArchiveFilter:
    """Return the filter that the query parameters describe."""
    return ArchiveFilter(person, platform, _instant(since, "since"), _instant(until, "until"))


Wanted = Annotated[ArchiveFilter, Depends(read_filter)]


@router.get("", response_model=ArchivePage, responses=described.problems(400, 401, 403))
async def list_records(
    request: Request,
    wanted: Wanted,
    after: Annotated[str, Query(description="The `next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Records of sessions that are over, by when they were asked for, a page at a time."""
    archive = service_of(request).archive
    records, following = await archive.page(await person_of(request), wanted, after=after, limit=limit)
    return json_response(ArchivePage(items=tuple(record_view(record) for record in records), next=following))


@router.get("/export", response_class=Response, **described.EXPORT)
async def export(
    request: Request,
    wanted: Wanted,
    format: Annotated[Literal["jsonl", "csv"], Query(description="Lines of JSON, or CSV.")] = "jsonl",
) -> Response:
    """All of it as one file, made while it is sent."""
    person, archive = await person_of(request), service_of(request).archive
    await archive.page(person, wanted, limit=1)  # raise errors now instead of sending half a file
    headers = {"content-disposition": f'attachment; filename="archive.{format}"', "x-content-type-options": "nosniff"}
    return StreamingResponse(archive.export(person, wanted, format), media_type=TYPES[format], headers=headers)


@router.get("/calibration", response_model=CalibrationList, responses=described.problems(400, 401))
async def calibrate(
    request: Request,
    since: Annotated[str, Query(description="Asked for at this instant or later; without it, in 90 days.")] = "",
) -> Response:
    """How often predicted starts and staging came true; of all sessions for operators, else of one's own."""
    rows = await service_of(request).archive.calibrate(await person_of(request), _instant(since, "since"))
    return json_response(CalibrationList(items=tuple(CalibrationView(**asdict(row)) for row in rows)))


@router.get("/{id}/request", response_class=Response, responses=described.problems(401, 404))
async def read_request(request: Request, id: str) -> Response:
    """The request of an archived session of one's own, as it was received."""
    text, kind = await service_of(request).archive.request(await person_of(request), id)
    return Response(text, media_type=kind or "application/json", headers={"x-content-type-options": "nosniff"})


@router.delete("", response_model=ErasedView, responses=described.problems(401, 403))
async def forget(
    request: Request,
    person: Annotated[str, Query(description="Whom; operators may name others. Empty: whoever asks.")] = "",
    records: Annotated[bool, Query(description="Remove the records too, not only whose they are.")] = False,
) -> Response:
    """Forget whose records these are, with the names and requests that they typed."""
    erased = await service_of(request).archive.erase(await person_of(request), person, records=records)
    return json_response(ErasedView(records=erased.records, details=erased.details))


def record_view(named: NamedRecord) -> SessionRecordView:
    """Return the view of a record."""
    values = {name: getattr(named.record, name) for name in COLUMNS}
    return SessionRecordView(**values, person=named.person, name=named.name)


def _instant(text: str, field: str) -> datetime | None:
    if not text:
        return None
    try:
        return read_instant(text)
    except (ValueError, OverflowError) as error:
        raise BadRequest(detail=f"`{field}` is no instant, as 2026-11-01T00:00:00Z is.") from error
