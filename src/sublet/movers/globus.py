"""Data in Globus' collections: `globus://COLLECTION/PATH`, by a transfer between two of them, or by HTTPS.

One that ends in / is a folder's. A system that has a collection of its own (`globus` in its settings) gets data by a
transfer that Globus carries out; else it is read where the collection's own web server has it.
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
ANSWER_PLAINLY = {"X-Requested-With": "XMLHttpRequest"}  # else a browser's sign-in is offered, and no refusal
NO_WEB_TO_SEND = "its collection has no HTTPS address, and the session ran where there is no collection"
LABEL = "Sublet"
GONE = ("TaskNotFound", "NotFound")
PART = ".part"  # what is being sent has this at the end of its name


class CollectionAuth(httpx2.Auth):
    """Shows what opens a collection's web server."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """Which headers."""
        self._headers = headers

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add them."""
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
        """Collections are read over HTTP."""
        self._http = HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with its address or checksum."""
        reasons = check_checksum(data)
        if why := self.check_push(data.location):
            reasons.append(refuse(data, f"It is no address of Globus: {why}.", nearest=EXAMPLE))
        return reasons

    def check_push(self, location: str) -> str:
        """Whether it names a collection and a path."""
        try:
            read_place(location)
        except ValueError as error:
            return str(error)
        return ""

    async def measure(self, data: Data) -> int | None:
        """The size of a file; a folder would take too long to add up."""
        if self.check(data) or data.location.endswith("/"):
            return None
        with suppress(TimeoutError, DataNotThere):
            async with asyncio.timeout(MOMENT):
                return (await self._list(data)).size
        return None

    def estimate(self, data: Data) -> timedelta:
        """How long it is going to take."""
        return guess(data, SPEED)

    def _client(self, location: str) -> GlobusClient:
        known = credential_for(self.policy.credentials, location)
        return GlobusClient(self.policy.globus_transfer, self.policy.globus_auth, known, self.pause)

    async def links(self, data: Data) -> LinkedFiles:
        """All files, by their addresses on the collection's web server if it has one."""
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
        """What is shown to a collection's web server: a token for it that is kept, or that a client gets."""
        url = f"{server}{quote(place.path)}"
        header = authorization(credential_for(self.policy.credentials, url)).partition(": ")[2]
        known = client.credential
        if not header and known and known.kind is CredentialKind.LOGIN:
            scope = f"{self.policy.globus_auth.rstrip('/')}/scopes/{place.collection}/https"
            header = f"Bearer {await client.find_token(scope)}"
        return {**ANSWER_PLAINLY, **({"Authorization": header} if header else {})}

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """One of them, from a byte on."""
        self._check_web(data, link)
        with _tell_shut(data, link):
            async with self._http.client() as client, closing(read_link(client, data, link, offset)) as pieces:
                async for piece in pieces:
                    yield piece

    def _check_web(self, data: Data, link: FileLink) -> None:
        if not link.url.startswith(("https:", "http:")):
            raise missing(data, NO_WEB)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Download a file under its own name, or all that is in a folder under its paths."""
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
        """Send a file under another name and give it its own when it is whole; its folders are made."""
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
        """The name under which a transfer is submitted once, however often that is tried."""
        return str((await self._ask(location, self._client(location).get("/submission_id")))["value"])

    async def submit(self, moves: Sequence[tuple[str, str]], submission: str) -> str:
        """Have Globus move each to its target; the task that does so. Submitted again, it is the same task."""
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
        """Give a file the name of its target; one that is not there any more has it already."""
        place, other, client = read_place(location), read_place(target), self._client(location)
        names = _describe("rename", old_path=place.path, new_path=other.path)
        with _tell_missing(Data("", SIMPLE, target)):
            try:
                await client.post(f"/operation/endpoint/{place.collection}/rename", names)
            except GlobusFailed as failed:
                if "NotFound" not in failed.code:
                    raise

    async def look(self, location: str, task: str) -> TransferState:
        """How far it is."""
        try:
            return read_task(await self._client(location).get(f"/task/{task}"))
        except GlobusFailed as failed:
            if failed.code in GONE:
                return TransferState(TransferPhase.UNKNOWN, 0, str(failed))
            raise missing(Data("", SIMPLE, location), str(failed)) from failed

    async def stop(self, location: str, task: str) -> None:
        """Nobody needs it any more."""
        with suppress(GlobusFailed, Interrupted):  # it ends by itself within a day
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
    """What a collection's web server says, with the data's own address, and what opens it."""
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
    """What opens a collection's web server, where that is what is missing."""
    is_shut = any(f"answered {code}" in why for code in (401, 403))
    return f"; keep a token for its web server: sublet credential add https://{host} --token" if is_shut else ""


async def _make_folders(client: GlobusClient, place: CollectionPlace) -> None:
    """Make the folder of a file, and those above it that aren't there; the home folder is."""
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
    """Whether it is there now; not, if the one above it is missing."""
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
