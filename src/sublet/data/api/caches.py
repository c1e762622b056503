"""Caches under /v1: what systems and this machine keep for later sessions."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.data.model.caches import CacheReport, KeptEntry
from sublet.data.views.caches import CacheEntryView, CacheList, CacheRemoval, CacheView

router = APIRouter(prefix="/v1/caches", tags=["Caches"])
LONGEST = 10 * 365 * 86400  # seconds


@router.get("", response_model=CacheList, responses=described.problems(400, 401, 403, 404))
async def caches(request: Request, platform: Annotated[str, Query(max_length=200)] = "") -> Response:
    """What each platform, or one of them, has in its cache; for operators."""
    reports = await service_of(request).caches.list(await person_of(request), platform)
    return json_response(CacheList(items=tuple(map(_view, reports))))


@router.delete("/{platform}", response_model=CacheRemoval, responses=described.problems(400, 401, 403, 404))
async def remove(
    request: Request,
    platform: str,
    name: Annotated[list[str] | None, Query(max_length=1000)] = None,
    idle: Annotated[float, Query(ge=0, le=LONGEST)] = 0,
    dry_run: bool = False,
) -> Response:
    """Remove entries by name, or all that no session has needed for so many seconds; for operators."""
    person, service = await person_of(request), service_of(request)
    gone = await service.caches.remove(person, platform, name or (), timedelta(seconds=idle), is_trial=dry_run)
    size = sum(entry.size for entry in gone)
    entries = tuple(map(_entry_view, gone))
    return json_response(CacheRemoval(platform=platform, size=size, entries=entries, dry_run=dry_run))


def _view(report: CacheReport) -> CacheView:
    return CacheView(
        platform=report.platform,
        quota=report.quota,
        size=report.size,
        entries=tuple(map(_entry_view, report.entries)),
        trouble=report.trouble,
    )


def _entry_view(entry: KeptEntry) -> CacheEntryView:
    return CacheEntryView(
        digest=entry.digest,
        short=entry.short,
        label=entry.label,
        size=entry.size,
        used=entry.used,
        needed_by=entry.users,
    )
