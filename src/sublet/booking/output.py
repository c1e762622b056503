"""A session's output, and the files that it left."""

from __future__ import annotations

import posixpath
import tarfile
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sublet.booking.contents import Contents
from sublet.booking.log_search import LineSearch, Match
from sublet.booking.model.phases import OVER
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.kernel.errors import NotFound
from sublet.kernel.log import log
from sublet.kernel.streams import closing
from sublet.people.model.person import Person
from sublet.platforms.port import ResultFile as ResultFile  # re-exported
from sublet.platforms.port import Results as Results

Stream = Literal["stdout", "stderr"]
Reading = Callable[[int], AsyncIterator[bytes]]
PIECE = 256 * 1024
TAIL = 64 * 1024
MOST_FOUND, MOST_SEARCHED = 100, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """Part of the output, where the next part begins, and whether there will be more."""

    data: bytes
    next: int
    ended: bool

    @property
    def start(self) -> int:
        """Return the offset at which the part begins."""
        return self.next - len(self.data)


@dataclass(frozen=True, slots=True)
class Found:
    """The lines of a log that contain some words, and the offset to search on from; None if all of it was searched."""

    matches: Sequence[Match]
    next: int | None


@dataclass
class SessionOutput:
    """Reads logs by offset, and results as files and as one archive."""

    platforms: KnownPlatforms
    signals: Signals
    contents: Contents
    sessions: Sessions

    async def output(self, name: str, person: Person, stream: Stream, offset: int = 0, limit: int = PIECE) -> Chunk:
        """Return a session's output from `offset` on, while it runs and after."""
        session = await self.contents.session_to_read(name, person, "output")
        return await self._chunk(session, stream, offset, min(limit, PIECE * 4))

    async def output_tail(self, name: str, person: Person, stream: Stream, limit: int = TAIL) -> Chunk:
        """Return the end of a session's output, from the beginning of a line on."""
        session = await self.contents.session_to_read(name, person, "output")
        size = await self._size(session, stream)
        chunk = await self._chunk(session, stream, max(0, size - limit), min(limit, PIECE * 4))
        return _whole_lines(chunk)

    async def output_before(self, name: str, person: Person, stream: Stream, end: int, limit: int = TAIL) -> Chunk:
        """Return the output just before an offset, from the beginning of a line on."""
        session = await self.contents.session_to_read(name, person, "output")
        start = max(0, end - min(limit, PIECE * 4))
        return _whole_lines(await self._chunk(session, stream, start, end - start)) if end else Chunk(b"", 0, False)

    async def _size(self, session: Session, stream: Stream) -> int:
        return await self.platforms.of(session).output_size(session.id, stream) if session.job else 0

    async def search_output(self, name: str, person: Person, stream: Stream, words: str, offset: int = 0) -> Found:
        """Find the lines that contain these words, from an offset on: at most a hundred, in at most 64 MiB."""
        session = await self.contents.session_to_read(name, person, "output")
        search, read = LineSearch(words, MOST_FOUND, offset), offset
        while words and not search.is_full and read - offset < MOST_SEARCHED:
            chunk = await self._chunk(session, stream, read, PIECE * 4)
            search.feed(chunk.data)
            read = chunk.next
            if len(chunk.data) < PIECE * 4:
                search.finish()
                return Found(search.matches, search.at if search.is_full else None)
        return Found(search.matches, search.at if words else None)

    async def whole_output(self, name: str, person: Person, stream: Stream) -> AsyncIterator[bytes]:
        """Yield all output so far, in pieces."""
        session, offset = await self.contents.session_to_read(name, person, "output"), 0
        while (chunk := await self._chunk(session, stream, offset, PIECE * 4)).data:
            yield chunk.data
            offset = chunk.next

    async def _chunk(self, session: Session, stream: Stream, offset: int, limit: int) -> Chunk:
        over = session.phase in OVER  # checked before reading, so that later output is never missed
        data = b""
        if session.job:
            data = await self.platforms.of(session).output(session.id, stream, offset, limit)
        return Chunk(data, offset + len(data), over and len(data) < limit)

    async def follow(self, name: str, person: Person, stream: Stream, offset: int = 0) -> AsyncIterator[bytes]:
        """Yield a session's output until the session is over."""
        id = (await self.contents.session_to_read(name, person, "output")).id
        while True:
            session = await self.sessions.get(id, person)
            chunk = await self._chunk(session, stream, offset, PIECE)
            if chunk.data:
                yield chunk.data
                offset = chunk.next
            elif chunk.ended:
                return
            else:
                await self.signals.wait(0.2)

    async def results(self, name: str, person: Person) -> Results:
        """Return the files in a session's working directory, and its empty folders."""
        session = await self.contents.session_to_read(name, person, "results")
        return await self.platforms.of(session).results(session.id) if session.job else Results()

    async def result(self, name: str, person: Person, path: str) -> tuple[ResultFile, Reading]:
        """Return one file, and a function that reads it from an offset on."""
        session = await self.contents.session_to_read(name, person, "results")
        wanted = posixpath.normpath(path)
        for file in (await self.results(session.id, person)).files:
            if file.path == wanted:
                return file, partial(self.platforms.of(session).read, session.id, file.path)
        raise NotFound(f"The session left no file {path}.", hint="`sublet result SESSION` lists the files.")

    async def note_fetched(self, name: str, person: Person) -> None:
        """Note that the files were fetched; they are removed if the session was a guest on its system."""
        session = await self.contents.session_to_read(name, person, "results")
        if session.phase in OVER and session.job:
            await self.platforms.of(session).come_home(session.id)
            log.info("session.fetched", session=session.id, platform=session.offer.platform)

    async def archive(self, name: str, person: Person) -> AsyncIterator[bytes]:
        """Yield all files and empty folders as one .tar.gz, made while it is sent."""
        session = await self.contents.session_to_read(name, person, "results")
        left = await self.results(session.id, person)
        platform = self.platforms.of(session)
        squeeze = zlib.compressobj(6, zlib.DEFLATED, 31)
        for folder in left.folders:
            header = tarfile.TarInfo(f"{session.id[:8]}/{folder}")
            header.type, header.mtime, header.mode = tarfile.DIRTYPE, int(session.modified.timestamp()), 0o755
            yield squeeze.compress(header.tobuf(tarfile.GNU_FORMAT))
        for file in left.files:
            header = tarfile.TarInfo(f"{session.id[:8]}/{file.path}")
            header.size, header.mtime, header.mode = file.size, int(file.modified.timestamp()), 0o644
            yield squeeze.compress(header.tobuf(tarfile.GNU_FORMAT))
            sent = 0
            async with closing(platform.read(session.id, file.path)) as pieces:
                async for piece in pieces:
                    piece = piece[: file.size - sent]  # it may have grown since it was listed
                    sent += len(piece)
                    yield squeeze.compress(piece)
            padding = file.size - sent + (-file.size % tarfile.BLOCKSIZE)
            yield squeeze.compress(bytes(padding))
        yield squeeze.compress(bytes(tarfile.BLOCKSIZE * 2))
        yield squeeze.flush()


def _whole_lines(chunk: Chunk) -> Chunk:
    """Drop the incomplete first line of a part that begins in the middle of a log."""
    if not chunk.start:
        return chunk
    cut = chunk.data.find(b"\n") + 1
    if not cut or cut == len(chunk.data):  # one long line: at least don't cut a character in two
        cut = next((i for i, byte in enumerate(chunk.data[:4]) if byte & 0xC0 != 0x80), 0)
    return Chunk(chunk.data[cut:], chunk.next, chunk.ended)
