"""A session's output on its page: the end first, any part by its offset, search, and download."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sublet.api.people import service_of
from sublet.booking.log_search import Match
from sublet.booking.model.phases import OVER
from sublet.booking.model.session import Session
from sublet.booking.output import PIECE, TAIL, Chunk, Stream
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.reading import visitor

STREAMS: tuple[Stream, ...] = get_args(Stream)
LONGEST_WORDS = 200
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Printed:
    """Part of the output as text, and where it is in the whole."""

    stream: Stream
    start: int
    text: str
    next: int
    ended: bool
    is_tail: bool  # it reaches to the end of the output so far

    @property
    def earlier(self) -> int:
        """Return where the part before this one begins."""
        return max(0, self.start - TAIL)


@dataclass(frozen=True, slots=True)
class FoundLines:
    """The lines that a search found, and from where to search on."""

    words: str
    stream: Stream
    lines: Sequence[tuple[int, str]]
    next: int | None


async def read_printed(request: Request, session: Session, person: Person, stream: Stream) -> Printed:
    """Return the end of a stream, or the part at the offset that the address names."""
    asked, service = request.query_params.get(stream, ""), service_of(request)
    try:
        chunk = await _part(service, session, person, stream, asked)
    except SubletError as error:
        return Printed(stream, 0, f"({error.message})", 0, ended=True, is_tail=True)
    is_tail = not asked or len(chunk.data) < TAIL
    return Printed(stream, chunk.start, readable(chunk.data), chunk.next, chunk.ended, is_tail)


async def _part(service: Service, session: Session, person: Person, stream: Stream, asked: str) -> Chunk:
    if asked:
        return await service.output.output(session.id, person, stream, _number(asked), TAIL)
    return await service.output.output_tail(session.id, person, stream)


async def find_words(request: Request, session: Session, person: Person) -> FoundLines | None:
    """Return the lines that contain the words in the address; None if it has none."""
    words = request.query_params.get("find", "").strip()[:LONGEST_WORDS]
    if not words:
        return None
    stream, offset = _stream(request), _number(request.query_params.get("from", ""))
    try:
        matches = await service_of(request).output.search_output(session.id, person, stream, words, offset)
    except SubletError:
        return FoundLines(words, stream, (), None)
    return FoundLines(words, stream, [_line(match) for match in matches.matches], matches.next)


def _line(match: Match) -> tuple[int, str]:
    return match.offset, readable(match.text)


async def log(request: Request) -> Response:
    """Return a part of a session's output, for the page's script; the headers say where it is and what has changed."""
    who, service, asked = await visitor(request), service_of(request), request.query_params
    session = await service.sessions.get(request.path_params["id"], who.person)
    stream, limit = _stream(request), min(_number(asked.get("limit", "")) or PIECE, PIECE)
    if "tail" in asked:
        chunk = await service.output.output_tail(session.id, who.person, stream, min(_number(asked["tail"]), PIECE))
    elif "before" in asked:
        chunk = await service.output.output_before(session.id, who.person, stream, _number(asked["before"]), limit)
    else:
        chunk = await service.output.output(session.id, who.person, stream, _number(asked.get("offset", "")), limit)
    headers = {
        "sublet-offset": str(chunk.start),
        "sublet-next-offset": str(chunk.next),
        "sublet-ended": "true" if chunk.ended else "false",
        "sublet-over": "true" if session.phase in OVER else "false",
        "sublet-changed": f"{session.phase} {session.modified.timestamp()}",
    }
    return Response(chunk.data, headers=headers, media_type="text/plain; charset=utf-8")


async def download(request: Request) -> Response:
    """Download all output so far."""
    who, service = await visitor(request), service_of(request)
    session = await service.contents.session_to_read(request.path_params["id"], who.person, "output")
    stream = _stream(request)
    headers = {"content-disposition": f'attachment; filename="{session.id[:8]}-{stream}.txt"'}
    pieces = service.output.whole_output(session.id, who.person, stream)
    return StreamingResponse(pieces, media_type="text/plain; charset=utf-8", headers=headers)


def readable(data: bytes) -> str:
    """Return output as a terminal would show it: without colour codes, and only the last state of overwritten lines."""
    text = ESCAPES.sub("", data.decode(errors="replace")).replace("\r\n", "\n").replace("\0", "")
    return "\n".join(_last_state(line) for line in text.split("\n")) if "\r" in text else text


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _stream(request: Request) -> Stream:
    return "stderr" if request.query_params.get("stream") == "stderr" else "stdout"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
