"""Previews of a session's files: text, tables, images; HTML and notebooks in a frame that runs no scripts."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sublet.api.people import service_of
from sublet.booking.output import ResultFile
from sublet.booking.pages.logs import readable
from sublet.booking.pages.notebooks import draw_notebook
from sublet.kernel.errors import NotFound
from sublet.kernel.separated import decode_text, is_table, read_rows
from sublet.kernel.streams import read_up_to
from sublet.web.drawing import page
from sublet.web.reading import visitor

MOST_TEXT = 256 * 1024  # bytes of a file that are shown as text or as a table
MOST_ROWS, MOST_COLUMNS = 200, 50
MOST_FRAMED = 16 * 1024 * 1024  # bytes of a file that is drawn in a frame
MOST_IMAGE = 64 * 1024 * 1024
IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}
FRAMED = (".html", ".htm", ".ipynb")
SANDBOX = {  # a session's file runs no scripts here, sends nothing, and can't pass for a page of ours
    "content-security-policy": "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
}
Kind = Literal["image", "frame", "table", "text", "none"]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a page shows of a file."""

    kind: Kind
    text: str = ""
    rows: Sequence[Sequence[str]] = ()
    is_cut: bool = False
    why: str = ""  # why nothing is shown


def kind_of(path: str, size: int) -> Kind:
    """Return how a file is shown, by its name and its size."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in IMAGES:
        return "image" if size <= MOST_IMAGE else "none"
    if suffix in FRAMED:
        return "frame" if size <= MOST_FRAMED else "none"
    return "table" if is_table(path) else "text"


def draw_preview(path: str, data: bytes, *, is_cut: bool) -> Preview:
    """Return the beginning of a file, as text or as a table."""
    if b"\0" in data:
        return Preview("none", why="It is not text.")
    suffix = PurePosixPath(path).suffix.lower()
    text = decode_text(data)
    if is_table(path):
        rows, more = _rows(text, path, is_cut=is_cut)
        return Preview("table", rows=rows, is_cut=is_cut or more)
    if suffix == ".json" and not is_cut:
        return Preview("text", _indent_json(text))
    return Preview("text", readable(data), is_cut=is_cut)


def _rows(text: str, path: str, *, is_cut: bool) -> tuple[list[list[str]], bool]:
    lines = text.rpartition("\n")[0] if is_cut else text  # the last row may be incomplete
    rows: list[list[str]] = []
    try:
        for row in read_rows(lines, path):
            if len(rows) > MOST_ROWS:
                return rows[:-1], True
            rows.append(row[:MOST_COLUMNS])
    except csv.Error:
        return [[line] for line in lines.splitlines()[:MOST_ROWS]], True
    return rows, False


def _indent_json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


async def look(request: Request) -> Response:
    """Show one file on a page."""
    who, service = await visitor(request), service_of(request)
    session = await service.sessions.get(request.path_params["id"], who.person)
    file, reading = await service.output.result(session.id, who.person, request.path_params["path"])
    kind = kind_of(file.path, file.size)
    preview = Preview(kind, why="It is too large to be shown." if kind == "none" else "")
    if kind in ("text", "table"):
        data = await _first(reading(0), MOST_TEXT)
        preview = draw_preview(file.path, data, is_cut=len(data) < file.size)
    return page(request, "preview.html", who, session=session, file=file, preview=preview)


async def raw(request: Request) -> Response:
    """Return a file for a preview: an image, or HTML that can run nothing."""
    who, service = await visitor(request), service_of(request)
    file, reading = await service.output.result(request.path_params["id"], who.person, request.path_params["path"])
    kind, suffix = kind_of(file.path, file.size), PurePosixPath(file.path).suffix.lower()
    if kind == "image":
        return StreamingResponse(reading(0), media_type=IMAGES[suffix], headers=SANDBOX)
    if kind != "frame":
        raise NotFound("This file is not drawn on pages.", hint="Download it instead.")
    return await _frame_document(file, reading(0), suffix)


async def _frame_document(file: ResultFile, pieces: AsyncIterator[bytes], suffix: str) -> Response:
    data = await _first(pieces, MOST_FRAMED)
    content = draw_notebook(data) if suffix == ".ipynb" else data
    return Response(content, media_type="text/html; charset=utf-8", headers=SANDBOX)


async def _first(pieces: AsyncIterator[bytes], most: int) -> bytes:
    return (await read_up_to(most, pieces))[:most]
