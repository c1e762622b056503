"""Data on WebDAV servers: `davs://SERVER/PATH`, or `dav://` without protection. One that ends in / is a folder's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit
from xml.etree import ElementTree

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import credential_for
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.streams import closing
from sublet.movers.arrival import check_place, guess, missing, refuse_folder, require_sound, unsent
from sublet.movers.http import SPEED, HttpMover, name_of
from sublet.movers.links import describe_link, quote_tag, read_link
from sublet.movers.port import SIMPLE, Content, Policy, Progress, PutAddress
from sublet.movers.sending import authorization, describe_refusal, put, sign_in
from sublet.movers.trees import MOST_FILES, RemoteFile, bring_folder, check_folder, safe_path
from sublet.movers.xml_answers import read_xml

EXAMPLE = "davs://data.example.org/team/file.dat"
WEB = {"dav": "http", "davs": "https"}
DAV = "{DAV:}"
PROPERTIES = b"<resourcetype/><getcontentlength/><getetag/><getlastmodified/>"
WANTED = b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop>%s</prop></propfind>' % PROPERTIES
MOST_FOLDERS = 10_000
ESCAPED = "%"  # in an address: a name that servers may read otherwise
THERE_ALREADY = 405
PART = ".part"  # what is being sent has this at the end of its name


@dataclass
class WebDavMover:
    """Brings files and folders, and sends files."""

    policy: Policy
    name: str = "webdav"
    schemes: Sequence[str] = ("davs", "dav")
    kinds: Sequence[str] = (SIMPLE,)
    _http: HttpMover = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """WebDAV is HTTP with a few words more."""
        self._http = HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with its address or checksum."""
        return check_place(data, self.check_push(data.location), EXAMPLE)

    def check_push(self, location: str) -> str:
        """Whether it names a server."""
        try:
            address = urlsplit(location)
            _ = address.port
        except ValueError as error:
            return f"it is not an address: {error}"
        return "" if address.hostname else "the address names no server"

    async def measure(self, data: Data) -> int | None:
        """The size of a file; a folder would take too long to add up."""
        if self.check(data) or data.location.endswith("/"):
            return None
        return await self._http.measure_at(_web(data.location), self._sign(data.location))

    def estimate(self, data: Data) -> timedelta:
        """How long the download is going to take."""
        return guess(data, SPEED)

    def _sign(self, location: str) -> httpx2.Auth | None:
        return sign_in(credential_for(self.policy.credentials, location))

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Download a file under its own name, or all that is in a folder under its paths."""
        require_sound(data, self.check(data))
        address = _web(data.location)
        async with self._http.client(self._sign(data.location)) as client:
            if address.endswith("/"):
                files = await _Listing(client, data, address).read()
                await bring_folder(self._http, client, data, files, target, progress)
                return
            await self._http.bring_file(client, replace(data, location=address), target / name_of(address), progress)

    async def links(self, data: Data) -> LinkedFiles:
        """Addresses of a file, or of all that is in a folder, and the header that opens them."""
        require_sound(data, self.check(data))
        address = _web(data.location)
        header = authorization(credential_for(self.policy.credentials, data.location)).partition(": ")[2]
        headers = {"Authorization": header} if header else {}
        async with self._http.client(self._sign(data.location)) as client:
            if address.endswith("/"):
                files = await _Listing(client, data, address).read()
                check_folder(data, files, self.policy.largest)
                return LinkedFiles([_link_file(data, file, headers) for file in files], is_folder=True)
        link = FileLink(name_of(address), address, headers, data.size, data.checksum)
        async with self._http.client() as client:
            return LinkedFiles([await describe_link(client, data, link)])

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """One of them, from a byte on."""
        async with self._http.client() as client, closing(read_link(client, data, link, offset)) as pieces:
            async for piece in pieces:
                yield piece

    async def open_put(self, path: str, size: int, location: str) -> PutAddress | None:
        """The address of a file with another name, whose folders are made; with the header that opens it."""
        sent = _name_target(location, path)
        address = _web(sent)
        header = authorization(credential_for(self.policy.credentials, location)).partition(": ")[2]
        async with self._http.client(self._sign(location)) as client:
            try:
                await _make_folders(client, Content(path, size, _read_nothing), address, sent)
                await _check_free(client, path, address, location, sent)
            except httpx2.TransportError as error:
                raise unsent(path, sent, str(error) or type(error).__name__) from error
        return PutAddress(address + PART, {"Authorization": header} if header else {})

    async def close_put(self, path: str, location: str) -> None:
        """Give it its own name."""
        sent = _name_target(location, path)
        async with self._http.client(self._sign(location)) as client:
            await _rename(client, path, _web(sent), sent)

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file under another name and give it its own when it is whole; its folders are made."""
        sent = _name_target(location, content.path)
        address = _web(sent)
        async with self._http.client(self._sign(location)) as client:
            try:
                await _make_folders(client, content, address, sent)
                await _check_free(client, content.path, address, location, sent)
                await put(client, content, address + PART, sent, progress)
            except httpx2.TransportError as error:
                raise unsent(content.path, sent, str(error) or type(error).__name__) from error
            await _rename(client, content.path, address, sent)
        return sent


async def _check_free(client: httpx2.AsyncClient, path: str, address: str, location: str, sent: str) -> None:
    """DataNotSent if a folder has the name of a file: a server would put the file in its place, with all that is in it.

    What a server doesn't tell is found out when the file gets its name.
    """
    headers = {"Depth": "0", "Content-Type": "application/xml"}
    answer = await client.request("PROPFIND", address, headers=headers, content=WANTED)
    with suppress(ElementTree.ParseError):
        if answer.is_success and read_xml(answer.content).find(f".//{DAV}collection") is not None:
            raise refuse_folder(path, location, sent)


async def _rename(client: httpx2.AsyncClient, path: str, address: str, location: str) -> None:
    """Give a file that is whole its own name."""
    headers = {"Destination": address, "Overwrite": "T"}
    try:
        moved = await client.request("MOVE", address + PART, headers=headers)
    except httpx2.TransportError as error:
        raise unsent(path, location, str(error) or type(error).__name__) from error
    if not moved.is_success:
        raise unsent(path, location, describe_refusal(moved))
    if ESCAPED in urlsplit(address).path and not await _is_there(client, address):
        raise unsent(path, location, "the server gave it another name, since it can't read this one")


async def _is_there(client: httpx2.AsyncClient, address: str) -> bool:
    """Whether a file has this name now: some servers read a `?` in the name that it is to get as the end of it."""
    headers = {"Depth": "0", "Content-Type": "application/xml"}
    try:
        return (await client.request("PROPFIND", address, headers=headers, content=WANTED)).is_success
    except httpx2.TransportError:
        return True  # it was said to be


async def _read_nothing(offset: int) -> AsyncIterator[bytes]:
    """What is sent elsewhere is not read here."""
    return
    yield b""


def _link_file(data: Data, file: RemoteFile, headers: dict[str, str]) -> FileLink:
    return FileLink(str(safe_path(data, file.path)), file.address, headers, file.size, version=file.version)


def _name_target(location: str, path: str) -> str:
    """The address that a file has when it was sent to a location: below it, if that is a folder's."""
    return f"{location}{quote(path)}" if location.endswith("/") else location


def _web(location: str) -> str:
    scheme, _, rest = location.partition(":")
    return f"{WEB[scheme.lower()]}:{rest}"


async def _make_folders(client: httpx2.AsyncClient, content: Content, address: str, location: str) -> None:
    """Make the folder of a file, and those above it that aren't there."""
    missing_ones: list[str] = []
    folder = urljoin(address, ".")
    while urlsplit(folder).path.strip("/"):
        answer = await client.request("MKCOL", folder)
        if answer.is_success or answer.status_code == THERE_ALREADY:
            break
        if answer.status_code != httpx2.codes.CONFLICT:  # else the one above it is missing
            raise unsent(content.path, location, describe_refusal(answer))
        missing_ones.append(folder)
        folder = urljoin(folder, "..")
    for folder in reversed(missing_ones):
        answer = await client.request("MKCOL", folder)
        if not answer.is_success and answer.status_code != THERE_ALREADY:
            raise unsent(content.path, location, describe_refusal(answer))


class _Listing:
    """All files below a folder, asked for folder by folder: many servers refuse to list all at once."""

    def __init__(self, client: httpx2.AsyncClient, data: Data, address: str) -> None:
        self._client, self._data = client, data
        self._root = unquote(urlsplit(address).path)
        self._waiting, self._asked = [address], set[str]()
        self._files: list[RemoteFile] = []

    async def read(self) -> list[RemoteFile]:
        """Ask until no folder is left."""
        while self._waiting:
            folder = self._waiting.pop()
            if folder in self._asked:
                continue
            self._asked.add(folder)
            if len(self._asked) > MOST_FOLDERS or len(self._files) > MOST_FILES:
                raise missing(self._data, "it has too many files; bring an archive of them instead")
            self._take(folder, await self._ask(folder))
        return self._files

    async def _ask(self, folder: str) -> ElementTree.Element:
        headers = {"Depth": "1", "Content-Type": "application/xml"}  # XRootD 5 knows them by their capitals
        try:
            answer = await self._client.request("PROPFIND", folder, headers=headers, content=WANTED)
            if not answer.is_success:
                raise missing(self._data, describe_refusal(answer))
            return read_xml(answer.content)
        except httpx2.TransportError as error:
            raise missing(self._data, str(error) or type(error).__name__) from error
        except ElementTree.ParseError as error:
            raise missing(self._data, f"the server's list can't be read: {error}") from error

    def _take(self, folder: str, answer: ElementTree.Element) -> None:
        for entry in answer.iter(f"{DAV}response"):
            address = urljoin(folder, entry.findtext(f"{DAV}href") or "")
            path = unquote(urlsplit(address).path)
            if urlsplit(address).netloc != urlsplit(folder).netloc or not path.startswith(self._root):
                continue  # it leads elsewhere
            if entry.find(f".//{DAV}collection") is not None:
                self._waiting.append(address if address.endswith("/") else f"{address}/")
            elif path != self._root:
                size = int(entry.findtext(f".//{DAV}getcontentlength") or 0)
                tag = quote_tag(entry.findtext(f".//{DAV}getetag") or "")
                tag = tag or entry.findtext(f".//{DAV}getlastmodified") or ""
                self._files.append(RemoteFile(path.removeprefix(self._root), size, address, tag))
