"""Commands of XRootD's client (`xrdfs`, `xrdcp`), and how their output is read."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

FILES, COPY = "xrdfs", "xrdcp"
LIMITS = {  # without these it waits for minutes for a dead server
    "XRD_CONNECTIONWINDOW": "4",
    "XRD_CONNECTIONRETRY": "1",
    "XRD_REQUESTTIMEOUT": "60",
    "XRD_STREAMTIMEOUT": "30",
    "XRD_TIMEOUTRESOLUTION": "1",
}
PATIENCE = 120.0  # seconds for an answer
STALL = 120.0  # seconds without a single byte
LOOK = 0.2  # seconds between two checks of a copy's progress
MOST_OUTPUT = 64 << 20
PIECE = 1 << 20  # bytes per read
EXPLAINED = {  # plain words for the client's own errors
    "Operation expired": "the server did not answer in time",
    "Socket timeout": "the server did not answer in time",
    "Connection error": "the server can't be reached",
    "Invalid address": "the name of the server can't be resolved",
}
INCOMPLETE = "may be incomplete"
LISTED = re.compile(  # with owner and group, or in the format of older servers
    r"(?P<mode>[-dl]\S*)\s+(?:\S+\s+\S+\s+(?P<size>\d+)\s+)?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s+"
    r"(?:(?P<old>\d+)\s+)?(?P<path>/.*)"
)


class XrootdFailed(Exception):
    """A command failed: the words are the server's, or the client's own."""


@dataclass(frozen=True)
class RemoteStat:
    """What a server reports about a path."""

    size: int
    is_folder: bool
    version: str  # changes with the file


@dataclass(frozen=True)
class XrootdServer:
    """An XRootD server: its address, and the client's environment."""

    address: str  # root://host:port
    environment: Mapping[str, str]

    def url(self, path: str) -> str:
        """Return the URL of a path in the client's syntax."""
        return f"{self.address}/{path}"

    async def stat(self, path: str) -> RemoteStat:
        """Return what the server has at a path."""
        return read_stat(await self._ask("stat", path))

    async def list_files(self, path: str) -> list[tuple[str, int]]:
        """List all files below a folder, with their sizes."""
        return read_listing(await self._ask("ls", "-l", "-R", path))

    async def find_checksum(self, path: str) -> str:
        """Return the checksum that the server stores of a file; empty if it has none."""
        try:
            return read_checksum(await self._ask("query", "checksum", path))
        except XrootdFailed:
            return ""

    async def rename(self, path: str, new: str) -> None:
        """Rename a file, replacing one of the new name."""
        await self._ask("mv", path, new)

    async def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with suppress(XrootdFailed):
            await self._ask("rm", path)

    async def _ask(self, *words: str) -> str:
        """Run an xrdfs command, and return its output."""
        async with self.start(FILES, self.address, *words) as process:
            try:
                async with asyncio.timeout(PATIENCE):
                    output, complaint = await process.communicate()
            except TimeoutError:
                raise XrootdFailed(f"the server did not answer within {PATIENCE:.0f} s") from None
        text = complaint.decode(errors="replace")
        if process.returncode or INCOMPLETE in text:
            raise XrootdFailed(read_complaint(text))
        return output[:MOST_OUTPUT].decode(errors="replace")

    async def fetch(self, path: str, part: Path) -> AsyncGenerator[int, None]:
        """Copy a file to a local path, resuming what is there; yield the number of bytes so far."""
        words = ("--silent", "--nopbar", "--continue", self.url(path), str(part))
        async with self.start(COPY, *words) as process:
            waiting = asyncio.create_task(process.communicate())
            size, quiet = _size_of(part), 0.0
            while not (await asyncio.wait([waiting], timeout=LOOK))[0]:
                before, size = size, _size_of(part)
                quiet = quiet + LOOK if size == before else 0.0
                if quiet > STALL:
                    raise XrootdFailed(f"nothing came for {STALL:.0f} s")
                yield size
            _, complaint = await waiting
        yield _size_of(part)
        if process.returncode:
            raise XrootdFailed(read_complaint(complaint.decode(errors="replace")))

    async def read(self, path: str) -> AsyncGenerator[bytes, None]:
        """Stream a file's content."""
        async with self.start(COPY, "--silent", "--nopbar", self.url(path), "-") as process:
            if process.stdout is None or process.stderr is None:
                raise XrootdFailed("the client has no output")
            complaining = asyncio.create_task(process.stderr.read())
            try:
                while piece := await asyncio.wait_for(process.stdout.read(PIECE), STALL):
                    yield piece
                complaint = await complaining
            except TimeoutError:
                raise XrootdFailed(f"nothing came for {STALL:.0f} s") from None
            finally:
                complaining.cancel()
            if await process.wait():
                raise XrootdFailed(read_complaint(complaint.decode(errors="replace")))

    @asynccontextmanager
    async def start(
        self, program: str, *words: str, stdin: int = asyncio.subprocess.DEVNULL
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run a command; when the block ends, kill it with its children if it is still running."""
        process = await asyncio.create_subprocess_exec(
            program,
            *words,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(self.environment),
            start_new_session=True,
            limit=PIECE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


def _size_of(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def read_stat(text: str) -> RemoteStat:
    """Parse the output of `stat`."""
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
    if not fields.get("Size", "").isdigit():
        raise XrootdFailed("the server's answer can't be read")
    is_folder = "IsDir" in fields.get("Flags", "")
    return RemoteStat(int(fields["Size"]), is_folder, f"{fields.get('MTime', '')} {fields['Size']}")


def read_listing(text: str) -> list[tuple[str, int]]:
    """Parse the files in the output of `ls -l -R`, by absolute path."""
    rows = [LISTED.fullmatch(line) for line in text.splitlines() if line.strip()]
    if not all(rows):
        raise XrootdFailed("the server's list can't be read")
    return [(row["path"], int(row["size"] or row["old"] or 0)) for row in rows if row and row["mode"][0] != "d"]


def read_checksum(text: str) -> str:
    """Parse a checksum into the form used elsewhere: `adler32:…`."""
    kind, _, digits = text.strip().partition(" ")
    return f"{kind.lower()}:{digits.strip().lower()}" if digits else ""


def read_complaint(text: str) -> str:
    """Return the client's last error, without prefixes of its log."""
    lines = [line.strip(" \t\0") for line in text.splitlines() if line.strip(" \t\0")]
    errors = [line for line in lines if "ERROR]" in line or "FATAL]" in line] or lines[-1:]
    if not errors:
        return "the client failed without a word"
    words = re.sub(r"^.*?\[(?:ERROR|FATAL)\]\s*", "", errors[-1])
    words = re.sub(r":?\s*\((?:source|destination)\)$", "", words).strip()
    words = re.sub(r"^Server responded with an error: \[\d+\]\s*", "", words)
    return EXPLAINED.get(words, words) or "the client failed without a word"
