"""Usage over HTTP, as JSON or CSV: an operator sees everybody's, a person their own."""

from __future__ import annotations

import csv
import io
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sublet.access.views.usage import UsageReport
from sublet.access.views.usage_convert import usage_report
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.booking.api.calendar import Instant, in_utc

router = APIRouter(prefix="/v1/usage", tags=["Accounts"])
CSV = "text/csv"
COLUMNS = ("quarter", "platform", "person", "sessions", "running", "core_hours", "node_hours", "gpu_hours")


@router.get(
    "",
    response_model=UsageReport,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}, **described.problems(400, 401, 403)},
)
async def usage(
    request: Request,
    platform: Annotated[str, Query(description="Only of this account or system.")] = "",
    person: Annotated[str, Query(description="Only of this person; operators may name others.")] = "",
    quarter: Annotated[str, Query(description="As `2026Q4`; without any, this one.")] = "",
    since: Annotated[Instant | None, Query(description="Instead of a quarter: from then on, with a zone.")] = None,
    until: Annotated[Instant | None, Query(description="Until before then.")] = None,
) -> Response:
    """Sessions, core-hours and node-hours by quarter, platform and person; with `Accept: text/csv`, as a table."""
    times = {"since": in_utc(since), "until": in_utc(until)}
    asker = await person_of(request)
    report = await service_of(request).access.usage.usage(asker, of=person, platform=platform, quarter=quarter, **times)
    view = usage_report(report.since, report.until, report.rows)
    if CSV in request.headers.get("accept", ""):
        return Response(csv_text(view), media_type=CSV, headers={"content-disposition": "attachment"})
    return json_response(view)


def csv_text(view: UsageReport) -> str:
    """Format a report as CSV; names that a spreadsheet would take for formulas are quoted."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(COLUMNS)
    for row in view.items:
        lines.writerow(_cell(getattr(row, column)) for column in COLUMNS)
    return written.getvalue()


def _cell(value: object) -> str:
    text = f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
