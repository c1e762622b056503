"""The mover of XRootD servers: `root://SERVER//PATH`, or `roots://` with TLS; one that ends in / is a folder.

It uses XRootD's own client, which must be installed where the service runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import CredentialKind, credential_for
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.part_names import name_part
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import (
    DIGESTS,
    check_arrived,
    check_place,
    guess,
    missing,
    refuse_folder,
    require_sound,
    safe_name,
    unsent,
)
from sublet.movers.http import MOMENT, SPEED, PartFile
from sublet.movers.port import SIMPLE, Content, Interrupted, Policy, Progress, ServerFiles, SourceChanged
from sublet.movers.trees import AT_ONCE, MOST_FILES, Tally, safe_path
from sublet.movers.xrootd_commands import COPY, FILES, LIMITS, RemoteStat, XrootdFailed, XrootdServer
from sublet.movers.xrootd_sending import send

EXAMPLE = "root://data.example.org//team/file.dat"
PORT = 1094
TRIES = 3  # failures in a row without progress
NOT_INSTALLED = "XRootD's client (xrdcp, xrdfs) is not installed where this service runs"
INSTALL = "Install the package xrootd-client, or use the https: or davs: address of the same server."
NO_TLS_HERE = "roots: addresses are not brought for others, since the client could be led to a private network"
PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
REDIRECTED = "Redirect limit"


@dataclass
class XrootdMover:
    """Brings files and folders, and sends files, by `xrdcp`."""

    policy: Policy
    name: str = "xrootd"
    schemes: Sequence[str] = ("root", "roots", "xroot", "xroots")
    kinds: Sequence[str] = (SIMPLE,)
    search_path: str | None = None  # where to look for the client; None: the service's own PATH

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum, or that the client isn't installed."""
        why = self.check_push(data.location)
        return check_place(data, why, INSTALL if why == NOT_INSTALLED else EXAMPLE)

    def check_push(self, location: str) -> str:
        """Return why the address can't be used: no path, or a secret that others could see in the process list."""
        try:
            address = urlsplit(location)
            _ = address.port
        except ValueError as error:
            return f"it is not an address: {error}"
        if not address.hostname or not address.path.strip("/"):
            return "the address names no server, or no path"
        if address.query or address.username or address.password:
            return "the address has a login or a query in it; write it without, and keep a token with sublet credential"
        if re.search(r"[\x00-\x1f#?]", location):
            return "the address has a letter that XRootD's client can't use"
        if self.policy.public_only and address.scheme.lower().endswith("s"):
            return f"{NO_TLS_HERE}; use https: or davs:"
        tools = [shutil.which(tool, path=self.search_path) for tool in (COPY, FILES)]
        return "" if all(tools) else NOT_INSTALLED

    async def measure(self, data: Data) -> int | None:
        """Return the size of a file; None for a folder, as adding it up would take too long."""
        if self.check(data) or data.location.endswith("/"):
            return None
        try:
            async with asyncio.timeout(MOMENT):
                server = await self._find_server(data.location)
                stat = await server.stat(path_of(data.location))
        except (TimeoutError, XrootdFailed):
            return None
        return None if stat.is_folder else stat.size

    def estimate(self, data: Data) -> timedelta:
        """Guess how long the copy takes."""
        return guess(data, SPEED)

    async def _find_server(self, location: str) -> XrootdServer:
        """Return the server to ask; its host is resolved here if only public addresses are allowed."""
        address = urlsplit(location)
        host, port = address.hostname or "", address.port or PORT
        if self.policy.public_only:
            try:
                host = (await public_addresses(host, port))[0]
            except (NotPublic, OSError) as error:
                raise XrootdFailed(str(error)) from error
        host = f"[{host}]" if ":" in host else host
        return XrootdServer(f"{address.scheme.lower()}://{host}:{port}", self.environment(location))

    def environment(self, location: str) -> Mapping[str, str]:
        """Return the client's environment; for other people it holds none of this account's own credentials."""
        credential = credential_for(self.policy.credentials, location)
        token = credential.secret if credential and credential.kind is CredentialKind.TOKEN else ""
        own = dict(os.environ) if not self.policy.public_only else {}
        environment = own | {name: os.environ[name] for name in PASSED_ON if name in os.environ} | LIMITS
        if self.search_path is not None:
            environment["PATH"] = self.search_path
        if token:
            environment["BEARER_TOKEN"] = token
        if self.policy.public_only:
            environment |= {"XRD_REDIRECTLIMIT": "0", "XrdSecPROTOCOL": "ztn" if token else "unix,host", "HOME": "/"}
        return environment

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Copy a file under its own name, or a folder's files under their paths."""
        require_sound(data, self.check(data))
        await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
        try:
            server, path = await self._find_server(data.location), path_of(data.location)
            stat = await server.stat(path)
            if stat.is_folder:
                await self._bring_folder(server, data, path.rstrip("/"), target, progress)
                return
            if data.location.endswith("/"):
                raise missing(data, "it is a file, and its address is written as a folder's")
            self._check_largest(data, stat.size)
            name = safe_name(path.rpartition("/")[2])
            await self._bring_file(server, data, path, stat, target, target / name, progress)
        except XrootdFailed as error:
            raise missing(data, self._explain(error)) from error

    def _explain(self, error: XrootdFailed) -> str:
        if REDIRECTED in str(error):
            return "the server leads on to another one, which is not followed here; use its https: or davs: address"
        return str(error)

    def _check_largest(self, data: Data, size: int) -> None:
        if self.policy.largest and size > self.policy.largest:
            raise missing(data, f"it has more than {self.policy.largest} bytes, the most that is downloaded here")

    async def _bring_folder(
        self, server: XrootdServer, data: Data, folder: str, target: Path, progress: Progress
    ) -> None:
        if data.checksum:
            raise missing(data, "it is a folder, and a checksum is of a file")
        files = await server.list_files(folder)
        if len(files) > MOST_FILES:
            raise missing(data, f"it has more than {MOST_FILES} files; bring an archive of them instead")
        total = sum(size for _, size in files)
        self._check_largest(data, total)
        tally, turns = Tally(total, progress), asyncio.Semaphore(AT_ONCE)

        async def bring(path: str, size: int) -> None:
            place = target / safe_path(data, path.removeprefix(f"{folder}/"))
            if "?" in path:
                raise missing(data, f"XRootD's client can't name a file with a question mark: {path}")
            async with turns:
                place.parent.mkdir(parents=True, exist_ok=True)
                stat = await server.stat(path)
                await self._bring_file(server, replace(data, size=size), path, stat, target, place, tally.of(path))

        try:
            async with asyncio.TaskGroup() as group:
                for path, size in files:
                    group.create_task(bring(path, size))
        except ExceptionGroup as several:
            raise several.exceptions[0] from several

    async def _bring_file(
        self,
        server: XrootdServer,
        data: Data,
        path: str,
        stat: RemoteStat,
        room: Path,
        place: Path,
        progress: Progress,
    ) -> None:
        """Copy a file, checked by the request's checksum or the server's; it gets its name when it is complete."""
        if not data.checksum:
            checksum = await server.find_checksum(path)
            data = replace(data, checksum=checksum if checksum.partition(":")[0] in DIGESTS else "")
        if await asyncio.to_thread(place.is_file):
            await asyncio.to_thread(check_arrived, data, place)
            return
        part = PartFile(room / f".{hashlib.sha256(path.encode()).hexdigest()[:16]}")
        if part.mark != stat.version:
            part.begin(stat.version)
        await self._persist(server, path, part, stat.size, progress)
        try:
            await asyncio.to_thread(check_arrived, data, part.path)
        except Exception:
            part.drop()  # resuming could never repair it
            raise
        part.path.rename(place)
        part.drop()

    async def _persist(self, server: XrootdServer, path: str, part: PartFile, size: int, progress: Progress) -> None:
        """Retry the copy until it is complete; raise the error after too many failures without progress."""
        failures = 0
        while True:
            before = part.size
            try:
                async with aclosing(server.fetch(path, part.path)) as sizes:
                    async for done in sizes:
                        progress(done, size)
                return
            except XrootdFailed:
                failures = 1 if part.size > before else failures + 1
                if failures >= TRIES or part.size > size:
                    raise

    async def list_versions(self, data: Data) -> ServerFiles:
        """Return the files with size and modification time as their versions."""
        require_sound(data, self.check(data))
        turns = asyncio.Semaphore(AT_ONCE)
        try:
            server, path = await self._find_server(data.location), path_of(data.location).rstrip("/")
            stat = await server.stat(path)
            if not stat.is_folder:
                return ServerFiles(is_folder=False, files={path.rpartition("/")[2]: (stat.size, stat.version)})

            async def look(file: str) -> tuple[str, tuple[int, str]]:
                async with turns:
                    stat = await server.stat(file)
                return file.removeprefix(f"{path}/"), (stat.size, stat.version)

            files = await asyncio.gather(*(look(file) for file, _ in await server.list_files(path)))
        except XrootdFailed as error:
            raise missing(data, self._explain(error)) from error
        return ServerFiles(is_folder=True, files=dict(files))

    async def links(self, data: Data) -> LinkedFiles:
        """Link the file, or all files of a folder, with the checksums that the server stores."""
        there = await self.list_versions(data)
        if data.checksum and there.is_folder:
            raise missing(data, "it is a folder, and a checksum is of a file")
        if len(there.files) > MOST_FILES:
            raise missing(data, f"it has more than {MOST_FILES} files; bring an archive of them instead")
        try:
            server, turns = await self._find_server(data.location), asyncio.Semaphore(AT_ONCE)
        except XrootdFailed as error:
            raise missing(data, str(error)) from error

        async def describe(path: str, size: int | None, version: str) -> FileLink:
            name = str(safe_path(data, path)) if there.is_folder else safe_name(path)
            url = f"{data.location.rstrip('/')}/{path}" if there.is_folder else data.location
            async with turns:
                known = data.checksum or await server.find_checksum(self._path(data, url, path))
            checksum = known if known.partition(":")[0].lower() in DIGESTS else ""
            return FileLink(name, url, {}, size, checksum, version)

        files = await asyncio.gather(*(describe(path, *facts) for path, facts in there.files.items()))
        return LinkedFiles(files, there.is_folder)

    def _path(self, data: Data, url: str, path: str) -> str:
        """Return a file's path on its server: the data's own, or one below it if the data is a folder."""
        if "?" in path:
            raise missing(data, f"XRootD's client can't name a file with a question mark: {path}")
        top = path_of(data.location).rstrip("/")
        return top if url == data.location else f"{top}/{path}"

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from an offset on; the client reads from the start, and the first part is skipped."""
        path, at = self._path(data, link.url, link.path), 0
        try:
            server = await self._find_server(data.location)
            async with aclosing(server.read(path)) as pieces:
                async for piece in pieces:
                    if at + len(piece) > offset:
                        yield piece[max(0, offset - at) :]
                    at += len(piece)
            stat = await server.stat(path)
        except XrootdFailed as error:
            raise Interrupted(self._explain(error)) from error
        if stat.version != link.version:
            raise SourceChanged("it changed while it was read")
        if at != link.size:
            raise Interrupted(f"the connection ended after {at} of {link.size} bytes")

    async def _is_folder(self, server: XrootdServer, path: str) -> bool:
        try:
            return (await server.stat(path)).is_folder
        except XrootdFailed:
            return False  # it doesn't exist, or the error will show when the file is sent

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file under a temporary name, and rename it when it is complete and checked."""
        sent = f"{location}{content.path}" if location.endswith("/") else location
        path = path_of(sent)
        part = name_part(path)
        try:
            server = await self._find_server(location)
            if await self._is_folder(server, path):
                raise refuse_folder(content.path, location, sent)
            try:
                checksum = await send(server, content, part, sent, progress)
                stat = await server.stat(part)
                known = await server.find_checksum(part)
                if stat.size != content.size or (known.startswith("adler32:") and known != checksum):
                    raise XrootdFailed(f"the server has {stat.size} bytes with the checksum {known}")
                await server.rename(part, path)
            except BaseException:
                await asyncio.shield(server.remove(part))
                raise
        except XrootdFailed as error:
            raise unsent(content.path, sent, self._explain(error)) from error
        return sent


def path_of(location: str) -> str:
    """Return the absolute path of an address, however many slashes it begins with."""
    return f"/{urlsplit(location).path.lstrip('/')}"
