"""tus 1.0, the protocol for resumable uploads, under /v1/tus: any tus client can send files.

Extensions: creation, creation-with-upload, expiration, checksum, termination.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator
from email.utils import format_datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.people import host_of, person_of, service_of
from sublet.api.streams import while_welcome
from sublet.data.model.uploads import SCHEME, WrongUpload, parse_metadata, read_wish
from sublet.data.uploads.area import ALGORITHMS, ChunkChecksum, check_algorithm
from sublet.data.uploads.transfers import Arrived
from sublet.kernel.errors import BadUpload, OldTus, WrongType
from sublet.people.model.person import Person

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,expiration,checksum,termination"
OCTETS = "application/offset+octet-stream"
MOST = 1 << 50  # bytes of one file, whatever the quota
router = APIRouter(prefix="/v1/tus", tags=["Uploads"])
Id = Annotated[str, Path(description="As in the Location that the file was begun at.")]
SENT: dict[str, Any] = {"requestBody": {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}}


def _headers(**names: str) -> dict[str, Any]:
    return {
        "headers": {
            name.replace("_", "-"): {"description": text, "schema": {"type": "string"}} for name, text in names.items()
        }
    }


BEGUN: described.Responses = {
    201: {"description": "It was begun.", **_headers(Location="Where its bytes go.", Upload_Expires="When it goes.")}
}
GONE_ON: described.Responses = {204: {"description": "It came.", **_headers(Upload_Offset="How many bytes are here.")}}


@router.options("", include_in_schema=False)
async def options(request: Request) -> Response:
    """What can be done here: versions, extensions, algorithms of checksums, and the most bytes of a file."""
    return options_response(service_of(request).settings.uploads.per_person)


@router.post(
    "",
    status_code=201,
    response_class=Response,
    responses={**BEGUN, **described.problems(400, 401, 403, 409, 412, 413, 415, 503)},
    openapi_extra=SENT,
)
async def create(request: Request) -> Response:
    """Begin a file: `Upload-Length`, and in `Upload-Metadata` its `upload` and `path`, or its `filename`."""
    person = await person_of(request)
    return await create_file(request, person, _stream(request, person), "/v1/tus")


@router.get("/{id}", status_code=200, response_class=Response, responses=described.problems(401, 404, 412))
async def look(request: Request, id: Id) -> Response:
    """How much of a file has come, in `Upload-Offset`; tus asks with HEAD."""
    return await look_at_file(request, await person_of(request), id)


@router.patch(
    "/{id}",
    status_code=204,
    response_class=Response,
    responses={**GONE_ON, **described.problems(400, 401, 403, 404, 409, 412, 413, 415, 503)},
    openapi_extra=SENT,
)
async def append(request: Request, id: Id) -> Response:
    """Go on with a file at `Upload-Offset`."""
    person = await person_of(request)
    return await append_to_file(request, person, _stream(request, person), id)


@router.delete("/{id}", status_code=204, response_class=Response, responses=described.problems(401, 403, 404, 412))
async def terminate(request: Request, id: Id) -> Response:
    """Give a file up, or remove it."""
    return await remove_file(request, await person_of(request), id)


@router.post("/{id}", status_code=204, response_class=Response, include_in_schema=False)
async def override(request: Request, id: Id) -> Response:
    """For clients behind something that knows GET and POST alone: `X-HTTP-Method-Override`."""
    method = request.headers.get("x-http-method-override", "").upper()
    if not method:
        raise HTTPException(405)
    person = await person_of(request)
    if method == "PATCH":
        return await append_to_file(request, person, _stream(request, person), id)
    if method == "DELETE":
        return await remove_file(request, person, id)
    raise BadUpload(why="X-HTTP-Method-Override has to be PATCH or DELETE here.")


def options_response(most: int) -> Response:
    """Return the supported versions, extensions, checksum algorithms and maximum size."""
    headers = {
        "tus-version": VERSION,
        "tus-extension": EXTENSIONS,
        "tus-max-size": str(min(most, MOST)),
        "tus-checksum-algorithm": ",".join(ALGORITHMS),
    }
    return _answer(204, headers)


async def create_file(request: Request, person: Person, pieces: AsyncIterator[bytes], prefix: str) -> Response:
    """Create a file of this person's, with its first bytes if the request has them."""
    _check_version(request)
    if "upload-defer-length" in request.headers:
        raise BadUpload(why="its length has to be known when it is begun: send Upload-Length.")
    size = _read_number(request, "upload-length")
    try:
        wish = read_wish(parse_metadata(request.headers.get("upload-metadata", "")), size)
    except WrongUpload as error:
        raise BadUpload(why=str(error)) from None
    transfers = service_of(request).uploads.transfers
    file = await transfers.begin(person, wish, host_of(request))
    arrived = Arrived(file, 0)
    if request.headers.get("content-type", "") == OCTETS and size:
        arrived = await transfers.append(person, file.id, 0, pieces, _read_checksum(request))
    headers = {"location": f"{prefix}/{file.id}", "upload-address": f"{SCHEME}:{wish.name}/"}
    return _answer(201, headers | _progress(arrived))


async def look_at_file(request: Request, person: Person, id: str) -> Response:
    """Return how much of a file has come."""
    _check_version(request)
    arrived = await service_of(request).uploads.transfers.look(person, id)
    headers = {"upload-length": str(arrived.file.size), "cache-control": "no-store"}
    return _answer(200, headers | _progress(arrived))


async def append_to_file(request: Request, person: Person, pieces: AsyncIterator[bytes], id: str) -> Response:
    """Append bytes to a file."""
    _check_version(request)
    kind = request.headers.get("content-type", "")
    if kind != OCTETS:
        raise WrongType(type=kind or "(none)", hint=f"Send {OCTETS}.")
    offset, checksum = _read_number(request, "upload-offset"), _read_checksum(request)
    transfers = service_of(request).uploads.transfers
    arrived = await transfers.append(person, id, offset, pieces, checksum)
    return _answer(204, _progress(arrived))


async def remove_file(request: Request, person: Person, id: str) -> Response:
    """Cancel a file's upload, or remove the file."""
    _check_version(request)
    await service_of(request).uploads.transfers.cancel(person, id)
    return _answer(204, {})


def _stream(request: Request, person: Person) -> AsyncIterator[bytes]:
    """Return the request's body, cut off when the sender's permission ends."""
    return while_welcome(request, person, request.stream())


def _check_version(request: Request) -> None:
    version = request.headers.get("tus-resumable", "(none)")
    if version != VERSION:
        raise OldTus(version=version[:30])


def _read_number(request: Request, name: str) -> int:
    text = request.headers.get(name, "")
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise BadUpload(why=f"{name.title()} has to be a number of bytes.")
    return int(text)


def _read_checksum(request: Request) -> ChunkChecksum | None:
    text = request.headers.get("upload-checksum", "")
    if not text:
        return None
    algorithm, _, digest = text.partition(" ")
    try:
        return ChunkChecksum(check_algorithm(algorithm), base64.b64decode(digest, validate=True))
    except binascii.Error:
        raise BadUpload(why="Upload-Checksum is not an algorithm and a digest in Base64.") from None


def _progress(arrived: Arrived) -> dict[str, str]:
    headers = {"upload-offset": str(arrived.offset)}
    if arrived.offset < arrived.file.size:
        headers["upload-expires"] = format_datetime(arrived.file.expires, usegmt=True)
    return headers


def _answer(status: int, headers: dict[str, str]) -> Response:
    return Response(status_code=status, headers={"tus-resumable": VERSION, **headers})
