"""What a session left, to be saved: never shown, because its files must not become pages of this site."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sublet.api.people import service_of
from sublet.web.reading import person


async def result(request: Request) -> Response:
    """One file."""
    path = request.path_params["path"]
    file, pieces = await service_of(request).result(request.path_params["id"], person(request), path)
    headers = _saved_as(path.rpartition("/")[2]) | {"content-length": str(file.size)}
    return StreamingResponse(_at_most(pieces, file.size), media_type="application/octet-stream", headers=headers)


async def archive(request: Request) -> Response:
    """All its files as one .tar.gz."""
    who = person(request)
    service = service_of(request)
    session = await service.session(request.path_params["id"], who)
    pieces = service.archive(session.id, who)
    return StreamingResponse(pieces, media_type="application/gzip", headers=_saved_as(f"{session.id[:8]}.tar.gz"))


def _saved_as(name: str) -> dict[str, str]:
    return {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


async def _at_most(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """The file as long as it was when it was listed: it may still grow."""
    async for piece in pieces:
        yield piece[:size]
        size -= len(piece)
        if size <= 0:
            return
