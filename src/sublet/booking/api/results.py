"""The files that a session left, one by one and as an archive."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.paths import allow_any_path
from sublet.api.people import person_of, service_of
from sublet.booking.api.sessions import LOOK, Id
from sublet.booking.model.request import SentResults
from sublet.booking.output import ResultFile
from sublet.booking.result_care import SendProgress
from sublet.booking.views.results import (
    ResultFileView,
    ResultKeepAsk,
    ResultKept,
    ResultList,
    SendAsk,
    SendProgressView,
    SentFileView,
)
from sublet.data.sending import SentFile
from sublet.kernel.errors import Changed, SubletError
from sublet.kernel.streams import closing
from sublet.kernel.views import plain
from sublet.people.model.person import Person
from sublet.service import Service

allow_any_path()
router = APIRouter(prefix="/v1/sessions", tags=["Logs and results"])


@router.get("/{id}/results", response_model=ResultList, responses=LOOK)
async def results(request: Request, id: Id) -> Response:
    """The files in its working directory, and the folders in it that are empty."""
    person, service = await person_of(request), service_of(request)
    left = await service.output.results(id, person)
    until = await service.results.find_end(id, person)
    views = (
        ResultFileView(path=file.path, size=file.size, modified=file.modified, etag=etag_of(file))
        for file in left.files
    )
    size = sum(file.size for file in left.files)
    return json_response(ResultList(items=tuple(views), size=size, folders=left.folders, kept_until=until))


@router.get("/{id}/results/{path:path}", response_class=Response, **described.FILE)
async def result(
    request: Request, id: Id, path: Annotated[str, Path(description="As in the list of results.")]
) -> Response:
    """One file, as it is; with `Range: bytes=N-`, `N-M` or `-N` a part of it; with `If-Match` only of that version."""
    return await file_response(service_of(request), await person_of(request), id, path, request.headers)


async def file_response(
    service: Service, person: Person, id: str, path: str, asked: Mapping[str, str] | None = None
) -> Response:
    """Return one file of a session as a download, or the range of it that the headers ask for."""
    file, reading = await service.output.result(id, person, path)
    etag, asked = etag_of(file), asked or {}
    if asked.get("if-match", "*") not in ("*", etag):
        raise Changed(path=path)
    part = _part_of(asked, file.size, etag)
    first, end = part or (0, file.size)
    headers = _offer_download(path.rpartition("/")[2]) | {
        "content-length": str(end - first),
        "etag": etag,
        "accept-ranges": "bytes",
    }
    if part:
        headers["content-range"] = f"bytes {first}-{end - 1}/{file.size}"
    return StreamingResponse(
        _at_most(reading(first), end - first),
        206 if part else 200,
        media_type="application/octet-stream",
        headers=headers,
    )


def etag_of(file: ResultFile) -> str:
    """Return the ETag of this version of a file."""
    return f'"{file.size:x}-{int(file.modified.timestamp() * 1_000_000):x}"'


def _part_of(asked: Mapping[str, str], size: int, etag: str) -> tuple[int, int] | None:
    """Return the first byte of the requested range and the byte after its last, or None for the whole file.

    Several ranges at once, and a range beyond the end of the file, are answered with the whole file.
    """
    match = re.fullmatch(r"bytes=([0-9]{0,18})-([0-9]{0,18})", asked.get("range", "").strip())
    if not match or asked.get("if-range", etag) != etag:
        return None
    begin, last = match.groups()
    if begin:
        first, end = int(begin), min(int(last) + 1, size) if last else size
    else:
        first, end = max(size - int(last or 0), 0), size
    return (first, end) if first < end else None


@router.post("/{id}/keep", response_model=ResultKept, responses=described.problems(400, 401, 403, 404, 409))
async def keep(request: Request, id: Id, ask: ResultKeepAsk) -> Response:
    """Keep the files of a session that is over for so long from now on."""
    until = await service_of(request).results.keep(id, await person_of(request), ask.duration)
    return json_response(ResultKept(kept_until=until))


@router.post("/{id}/send", response_class=Response, **described.SENT)
async def send(request: Request, id: Id, ask: SendAsk) -> Response:
    """Send results to your own storage; the answer has a line of JSON for each file as it arrives.

    Asked again, it sends what has changed or is not there. With `progress` there are lines in between that say how far
    a file is.
    """
    results = SentResults(ask.path or "*", ask.to)
    lines = _write_lines(service_of(request).results.send(id, await person_of(request), results), ask.progress)
    first = await anext(lines, b"")  # raises now if nothing can be sent at all
    return StreamingResponse(_chain(first, lines), media_type="application/jsonl")


async def _write_lines(sent: AsyncIterator[SentFile | SendProgress], with_progress: bool) -> AsyncIterator[bytes]:
    """Yield a line of JSON for each file; if sending fails after the first line, the last line is the error."""
    count = 0
    try:
        async with closing(sent) as sent:
            async for piece in sent:
                if with_progress or isinstance(piece, SentFile):
                    count += 1
                    yield to_json(plain(_view_sent(piece))) + b"\n"
    except SubletError as error:
        if not count:
            raise
        yield to_json({"error": error.message, "hint": error.advice}) + b"\n"


def _view_sent(piece: SentFile | SendProgress) -> SentFileView | SendProgressView:
    if isinstance(piece, SendProgress):
        return SendProgressView(doing=piece.doing, done=piece.done, total=piece.total)
    return SentFileView(path=piece.path, size=piece.size, to=piece.to, road=piece.road, was_there=piece.was_there)


@router.get("/{id}/archive", response_class=Response, **described.ARCHIVE)
async def archive(request: Request, id: Id) -> Response:
    """All its files and empty folders as one .tar.gz, made while it is sent."""
    return await archive_response(service_of(request), await person_of(request), id)


@router.post("/{id}/fetched", status_code=204, responses=described.problems(401, 403, 404, 409, 503))
async def fetched(request: Request, id: Id) -> Response:
    """Its files are home: where it was a guest nothing of it stays. What it printed can still be read.

    On a system that Sublet is a guest on, its files are removed now instead of after their keep time; elsewhere, and
    while the session is not over, nothing is done.
    """
    await service_of(request).output.note_fetched(id, await person_of(request))
    return Response(status_code=204)


async def archive_response(service: Service, person: Person, id: str) -> Response:
    """Return all files of a session as an archive to download."""
    session = await service.sessions.get(id, person)
    pieces = service.output.archive(session.id, person)
    first = await anext(pieces, b"")  # raises now if the files can't be read, instead of sending half an archive
    headers = _offer_download(f"{session.id[:8]}.tar.gz")
    return StreamingResponse(_chain(first, pieces), media_type="application/gzip", headers=headers)


def _offer_download(name: str) -> dict[str, str]:
    """Return headers that make browsers save a file: a session's files must not become pages of this site."""
    return {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "x-content-type-options": "nosniff",
    }


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async with closing(rest) as rest:
        async for piece in rest:
            yield piece


async def _at_most(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Yield at most `size` bytes, the file's size when it was listed: the file may still grow."""
    async with closing(pieces) as pieces:
        async for piece in pieces:
            yield piece[:size]
            size -= len(piece)
            if size <= 0:
                return
