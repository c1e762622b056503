"""The mover of Globus collections: `globus://COLLECTION/PATH`, by a transfer between collections or by HTTPS.

An address that ends in / is a folder. A system with a collection of its own (`globus` in its settings) gets data by a
Globus transfer; otherwise it is read from the collection's HTTPS server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from posixpath import basename, dirname
from typing import Any
from urllib.parse import quote

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import CredentialKind, credential_for
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.errors import DataNotSent, DataNotThere
from sublet.kernel.streams import closing
from sublet.movers.arrival import check_checksum, guess, missing, refuse, require_sound, unsent
from sublet.movers.globus_api import GlobusClient, GlobusFailed
from sublet.movers.globus_files import CollectionPlace, find_web_server, list_files, read_place, read_task
from sublet.movers.http import MOMENT, SPEED, HttpMover
from sublet.movers.links import read_link
from sublet.movers.port import SIMPLE, Content, Interrupted, Policy, Progress, TransferPhase, TransferState
from sublet.movers.sending import authorization, put
from sublet.movers.trees import RemoteFile, bring_folder, check_folder, safe_path

EXAMPLE = "globus://aa752cea-8222-5bc8-acd9-555b090c0ccb/home/share/file.dat"
NO_WEB = "its collection has no HTTPS address, so that only a system with a collection of its own gets it (`globus`)"
# Otherwise it redirects to a browser sign-in instead of refusing
ANSWER_PLAINLY = {"X-Requested-With": "XMLHttpRequest"}
NO_WEB_TO_SEND = "its collection has no HTTPS address, and the session ran where there is no collection"
LABEL = "Sublet"
GONE = ("TaskNotFound", "NotFound")
PART = ".part"  # suffix of files that are still being sent


class CollectionAuth(httpx2.Auth):
    """Authenticates to a collection's HTTPS server."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """Use these headers."""
        self._headers = headers

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the headers."""
        request.headers.update(self._headers)
        yield request


@dataclass
class GlobusMover:
    """Brings and sends files and folders, and has Globus move them between collections."""

    policy: Policy
    name: str = "globus"
    schemes: Sequence[str] = ("globus",)
    kinds: Sequence[str] = (SIMPLE,)
    pause: float = 0.5  # seconds before Globus is asked a second time
    _http: HttpMover = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the HTTP mover that reads collections."""
        self._http = HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        if why := self.check_push(data.location):
            reasons.append(refuse(data, f"It is no address of Globus: {why}.", nearest=EXAMPLE))
        return reasons

    def check_push(self, location: str) -> str:
        """Return why the address names no collection and path; empty if it does."""
        try:
            read_place(location)
        except ValueError as error:
            return str(error)
        return ""

    async def measure(self, data: Data) -> int | None:
        """Return the size of a file; None for a folder, as adding it up would take too long."""
        if self.check(data) or data.location.endswith("/"):
            return None
        with suppress(TimeoutError, DataNotThere):
            async with asyncio.timeout(MOMENT):
                return (await self._list(data)).size
        return None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    def _client(self, location: str) -> GlobusClient:
        known = credential_for(self.policy.credentials, location)
        return GlobusClient(self.policy.globus_transfer, self.policy.globus_auth, known, self.pause)

    async def links(self, data: Data) -> LinkedFiles:
        """Link all files, by their addresses on the collection's HTTPS server if it has one."""
        return await self._list(data, is_read=True)

    async def _list(self, data: Data, *, is_read: bool = False) -> LinkedFiles:
        require_sound(data, self.check(data))
        place, client = read_place(data.location), self._client(data.location)
        with _tell_missing(data):
            files = await list_files(client, place)
            server = await find_web_server(client, place.collection) if is_read else ""
            headers = await self._open(client, place, server) if server else {}
        links = []
        for file in files:
            whole = place.below(file.path) if place.is_folder else place
            url = f"{server}{quote(whole.path)}" if server else whole.address
            path = str(safe_path(data, file.path)) if place.is_folder else basename(place.path)
            checksum = "" if place.is_folder else data.checksum
            links.append(FileLink(path, url, headers, file.size, checksum, file.version, source=whole.address))
        if place.is_folder:
            remote = [RemoteFile(link.path, link.size or 0, link.url) for link in links]
            check_folder(data, remote, self.policy.largest)
        return LinkedFiles(links, place.is_folder)

    async def _open(self, client: GlobusClient, place: CollectionPlace, server: str) -> dict[str, str]:
        """Return the headers for a collection's HTTPS server: with a stored token, or one that the client gets."""
        url = f"{server}{quote(place.path)}"
        header = authorization(credential_for(self.policy.credentials, url)).partition(": ")[2]
        known = client.credential
        if not header and known and known.kind is CredentialKind.LOGIN:
            scope = f"{self.policy.globus_auth.rstrip('/')}/scopes/{place.collection}/https"
            header = f"Bearer {await client.find_token(scope)}"
        return {**ANSWER_PLAINLY, **({"Authorization": header} if header else {})}

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from a byte offset on."""
        self._check_web(data, link)
        with _tell_shut(data, link):
            async with self._http.client() as client, closing(read_link(client, data, link, offset)) as pieces:
                async for piece in pieces:
                    yield piece

    def _check_web(self, data: Data, link: FileLink) -> None:
        if not link.url.startswith(("https:", "http:")):
            raise missing(data, NO_WEB)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Download a file under its own name, or a folder's files under their paths."""
        files = await self.links(data)
        first = files.links[0]
        self._check_web(data, first)
        with _tell_shut(data, first):
            async with self._http.client(CollectionAuth(first.headers)) as client:
                if files.is_folder:
                    remote = [RemoteFile(link.path, link.size or 0, link.url) for link in files.links]
                    await bring_folder(self._http, client, data, remote, target, progress)
                else:
                    item = replace(data, location=first.url, size=first.size if data.size is None else data.size)
                    await self._http.bring_file(client, item, target / first.path, progress)

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file under a temporary name, and rename it when it is complete; missing folders are made."""
        place, client = read_place(location), self._client(location)
        place = place.below(content.path) if place.is_folder else place
        operation = f"/operation/endpoint/{place.collection}"
        with _tell_unsent(content, place.address):
            server = await find_web_server(client, place.collection)
            if not server:
                raise GlobusFailed(NO_WEB_TO_SEND)
            headers = await self._open(client, place, server)
            await _make_folders(client, place)
            async with self._http.client(CollectionAuth(headers)) as web:
                await put(web, content, f"{server}{quote(place.path + PART)}", place.address, progress)
            await client.post(
                f"{operation}/rename", _describe("rename", old_path=place.path + PART, new_path=place.path)
            )
        return place.address

    async def reserve(self, location: str) -> str:
        """Get an idempotency key, under which a transfer is submitted only once."""
        return str((await self._ask(location, self._client(location).get("/submission_id")))["value"])

    async def submit(self, moves: Sequence[tuple[str, str]], submission: str) -> str:
        """Have Globus move each source to its target; return the task's id, the same for the same submission."""
        source, target = read_place(moves[0][0]), read_place(moves[0][1])
        items = [(read_place(start), read_place(end)) for start, end in moves]
        body = {
            "DATA_TYPE": "transfer",
            "submission_id": submission,
            "label": LABEL,
            "source_endpoint": source.collection,
            "destination_endpoint": target.collection,
            "verify_checksum": True,
            "fail_on_quota_errors": True,
            "notify_on_succeeded": False,
            "notify_on_failed": False,
            "notify_on_inactive": False,
            "DATA": [_describe_item(place, other) for place, other in items],
        }
        asker = next((end for end in moves[0] if credential_for(self.policy.credentials, end)), moves[0][0])
        return str((await self._ask(moves[0][0], self._client(asker).post("/transfer", body)))["task_id"])

    async def rename(self, location: str, target: str) -> None:
        """Rename a file to its target; a file that is gone was renamed already."""
        place, other, client = read_place(location), read_place(target), self._client(location)
        names = _describe("rename", old_path=place.path, new_path=other.path)
        with _tell_missing(Data("", SIMPLE, target)):
            try:
                await client.post(f"/operation/endpoint/{place.collection}/rename", names)
            except GlobusFailed as failed:
                if "NotFound" not in failed.code:
                    raise

    async def look(self, location: str, task: str) -> TransferState:
        """Return a task's progress."""
        try:
            return read_task(await self._client(location).get(f"/task/{task}"))
        except GlobusFailed as failed:
            if failed.code in GONE:
                return TransferState(TransferPhase.UNKNOWN, 0, str(failed))
            raise missing(Data("", SIMPLE, location), str(failed)) from failed

    async def stop(self, location: str, task: str) -> None:
        """Cancel a task."""
        with suppress(GlobusFailed, Interrupted):  # it expires within a day anyway
            await self._client(location).post(f"/task/{task}/cancel", {})

    async def _ask(self, location: str, answering: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        with _tell_missing(Data("", SIMPLE, location)):
            return await answering


@contextmanager
def _tell_missing(data: Data) -> Iterator[None]:
    try:
        yield
    except (GlobusFailed, Interrupted) as failed:
        raise missing(data, str(failed)) from failed


@contextmanager
def _tell_shut(data: Data, link: FileLink) -> Iterator[None]:
    """Turn a collection server's refusal into one with the data's own address, and advice on credentials."""
    try:
        yield
    except DataNotThere as error:
        why = str(error.values["why"])
        raise missing(data, f"{why}{_advise(why, link.host)}") from error


@contextmanager
def _tell_unsent(content: Content, location: str) -> Iterator[None]:
    try:
        yield
    except (GlobusFailed, Interrupted) as failed:
        raise unsent(content.path, location, str(failed)) from failed
    except DataNotSent as error:
        why = str(error.values["why"])
        raise unsent(content.path, location, f"{why}{_advise(why, read_place(location).collection)}") from error


def _advise(why: str, host: str) -> str:
    """Return advice on the credential that a collection's HTTPS server wants, if that is what is missing."""
    is_shut = any(f"answered {code}" in why for code in (401, 403))
    return f"; keep a token for its web server: sublet credential add https://{host} --token" if is_shut else ""


async def _make_folders(client: GlobusClient, place: CollectionPlace) -> None:
    """Make the folder of a file and its missing parents; the home folder always exists."""
    folder, absent = dirname(place.path), list[str]()
    while folder.strip("/~"):
        if await _make_folder(client, place.collection, folder):
            break
        absent.append(folder)
        folder = dirname(folder)
    for folder in reversed(absent):
        if not await _make_folder(client, place.collection, folder):
            raise GlobusFailed(f"the folder {folder} can't be made")


async def _make_folder(client: GlobusClient, collection: str, folder: str) -> bool:
    """Make a folder; return whether it exists now, which fails if its parent is missing."""
    try:
        await client.post(f"/operation/endpoint/{collection}/mkdir", _describe("mkdir", path=folder))
    except GlobusFailed as failed:
        if "NotFound" in failed.code:
            return False
        if "Exists" not in failed.code:
            raise
    return True


def _describe(kind: str, **fields: str) -> dict[str, str]:
    return {"DATA_TYPE": kind, **fields}


def _describe_item(place: CollectionPlace, target: CollectionPlace) -> dict[str, str | bool]:
    return {
        "DATA_TYPE": "transfer_item",
        "source_path": place.path,
        "destination_path": target.path,
        "recursive": place.is_folder,
    }
