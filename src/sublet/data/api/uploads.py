"""Uploads under /v1: list, show, keep and remove a person's own. Files are sent to /v1/tus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.data.model.uploads import SCHEME, Upload
from sublet.data.uploads.uploads import FileProgress
from sublet.data.views.uploads import KeepAsk, UploadFileView, UploadList, UploadShown, UploadView

router = APIRouter(prefix="/v1/uploads", tags=["Uploads"])
Name = Annotated[str, Path(description="Its name, or its id.")]
Force = Annotated[bool, Query(description="Also if sessions wait for it; they are going to fail.")]


@router.get("", response_model=UploadList, responses=described.problems(401))
async def uploads(request: Request) -> Response:
    """Your uploads."""
    service = service_of(request)
    own = await service.uploads.kept.list(await person_of(request))
    size, most = sum(upload.size for upload in own), service.settings.uploads.per_person
    return json_response(UploadList(items=tuple(map(view_upload, own)), size=size, most=most))


@router.get("/{name}", response_model=UploadShown, responses=described.problems(401, 404))
async def upload(request: Request, name: Name) -> Response:
    """One upload, with its files, complete or not."""
    known, files, uses = await service_of(request).uploads.kept.get(await person_of(request), name)
    return json_response(UploadShown(upload=view_upload(known), items=view_files(files), sessions=tuple(uses)))


@router.post("/{name}/keep", response_model=UploadView, responses=described.problems(400, 401, 403, 404))
async def keep(request: Request, name: Name, ask: KeepAsk) -> Response:
    """Keep it for so long from now on."""
    kept = service_of(request).uploads.kept
    return json_response(view_upload(await kept.keep(await person_of(request), name, ask.duration, host_of(request))))


@router.delete("/{name}", status_code=204, responses=described.problems(401, 403, 404, 409))
async def remove(request: Request, name: Name, force: Force = False) -> Response:
    """Remove it with its files."""
    kept = service_of(request).uploads.kept
    await kept.remove(await person_of(request), name, host_of(request), force=force)
    return Response(status_code=204)


def view_upload(upload: Upload) -> UploadView:
    """Return an upload as its view."""
    return UploadView(
        id=upload.id,
        name=upload.name,
        address=f"{SCHEME}:{upload.name}/",
        created=upload.created,
        keep_until=upload.keep_until,
        files=upload.files,
        size=upload.size,
    )


def view_files(files: Sequence[FileProgress]) -> tuple[UploadFileView, ...]:
    """Return the files of an upload as views."""
    return tuple(
        UploadFileView(
            id=progress.file.id,
            path=progress.file.path,
            size=progress.file.size,
            offset=progress.offset,
            whole=progress.file.is_whole,
            modified=progress.file.modified,
            expires=None if progress.file.is_whole else progress.file.expires,
        )
        for progress in files
    )
