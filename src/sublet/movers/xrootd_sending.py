"""Sends a file to an XRootD server through the client's standard input."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from sublet.kernel.checksums import Adler32
from sublet.kernel.streams import closing
from sublet.movers.arrival import unsent
from sublet.movers.port import Content, Progress
from sublet.movers.xrootd_commands import COPY, XrootdFailed, XrootdServer, read_complaint

STREAMS = "the client's streams are not there"


async def send(server: XrootdServer, content: Content, path: str, location: str, progress: Progress) -> str:
    """Send a file completely or not at all, and return its checksum."""
    words = ("--silent", "--nopbar", "--force", "--posc", "-", server.url(path))
    async with server.start(COPY, *words, stdin=asyncio.subprocess.PIPE) as process:
        if process.stdin is None or process.stderr is None:
            raise XrootdFailed(STREAMS)
        complaint = asyncio.create_task(process.stderr.read())
        checksum = ""
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has ended; its error output says why
            checksum = await _feed(process.stdin, content, location, progress)
        words_of_failure = (await complaint).decode(errors="replace")
        if await process.wait():
            raise XrootdFailed(read_complaint(words_of_failure))
    return checksum


async def _feed(stdin: asyncio.StreamWriter, content: Content, location: str, progress: Progress) -> str:
    """Write the content; if it changes meanwhile, raise before closing the input, so that the client gets killed."""
    checksum, sent = Adler32(), 0
    async with closing(content.read(0)) as pieces:
        async for piece in pieces:
            sent += len(piece)
            if sent > content.size:
                break
            checksum.update(piece)
            stdin.write(piece)
            await stdin.drain()
            progress(sent, content.size)
    if sent != content.size:
        raise unsent(content.path, location, f"it changed as it was read: {sent} of {content.size} bytes came")
    stdin.close()
    return f"adler32:{checksum.hexdigest()}"
