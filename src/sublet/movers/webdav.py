"""The mover of WebDAV servers: `davs://SERVER/PATH`, or `dav://` without TLS; one that ends in / is a folder."""

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
from sublet.kernel.part_names import name_part
from sublet.kernel.streams import closing
from sublet.movers.arrival import check_place, guess, missing, refuse_folder, require_sound, unsent
from sublet.movers.http import SPEED, HttpMover, name_of
from sublet.movers.links import quote_tag, read_link
from sublet.movers.login_auth import needs_digest
from sublet.movers.port import SIMPLE, Content, NoLinks, Policy, Progress, PutAddress, ServerFiles
from sublet.movers.sending import authorization, describe_refusal, put, sign_in
from sublet.movers.trees import MOST_FILES, RemoteFile, bring_folder, check_folder, read_size, safe_path
from sublet.movers.web_errors import describe_web_error
from sublet.movers.xml_answers import read_xml

EXAMPLE = "davs://data.example.org/team/file.dat"
WEB = {"dav": "http", "davs": "https"}
DAV = "{DAV:}"
PROPERTIES = b"<resourcetype/><getcontentlength/><getetag/><getlastmodified/>"
WANTED = b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop>%s</prop></propfind>' % PROPERTIES
MOST_FOLDERS = 10_000
ESCAPED = "%"  # in an address: servers may misread such a name
THERE_ALREADY = 405


@dataclass
class WebDavMover:
    """Brings files and folders, and sends files."""

    policy: Policy
    name: str = "webdav"
    schemes: Sequence[str] = ("davs", "dav")
    kinds: Sequence[str] = (SIMPLE,)
    _http: HttpMover = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the HTTP mover that transfers files."""
        self._http = HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        return check_place(data, self.check_push(data.location), EXAMPLE)

    def check_push(self, location: str) -> str:
        """Return why the address names no server; empty if it does."""
        try:
            address = urlsplit(location)
            _ = address.port
        except ValueError as error:
            return f"it is not an address: {error}"
        return "" if address.hostname else "the address names no server"

    async def measure(self, data: Data) -> int | None:
        """Return the size of a file; None for a folder, as adding it up would take too long."""
        if self.check(data) or data.location.endswith("/"):
            return None
        return await self._http.measure_at(_web(data.location), self._sign(data.location))

    def estimate(self, data: Data) -> timedelta:
        """Guess how long the download takes."""
        return guess(data, SPEED)

    def _sign(self, location: str) -> httpx2.Auth | None:
        return sign_in(credential_for(self.policy.credentials, location))

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Download a file under its own name, or a folder's files under their paths."""
        require_sound(data, self.check(data))
        address = _web(data.location)
        async with self._http.client(self._sign(data.location)) as client:
            if address.endswith("/"):
                files = await _Listing(client, data, address).read()
                await bring_folder(self._http, client, data, files, target, progress)
                return
            await self._http.bring_file(client, replace(data, location=address), target / name_of(address), progress)

    async def links(self, data: Data) -> LinkedFiles:
        """Link a file, or all files of a folder, with the header that opens them."""
        require_sound(data, self.check(data))
        address = _web(data.location)
        header = authorization(credential_for(self.policy.credentials, data.location)).partition(": ")[2]
        headers = {"Authorization": header} if header else {}
        auth = self._sign(data.location)
        async with self._http.client(auth) as client:
            if address.endswith("/"):
                files = await _Listing(client, data, address).read()
                if needs_digest(auth):
                    raise NoLinks
                check_folder(data, files, self.policy.largest)
                return LinkedFiles([_link_file(data, file, headers) for file in files], is_folder=True)
        link = FileLink(name_of(address), address, headers, data.size, data.checksum)
        return LinkedFiles([await self._http.describe(data, link, auth)])

    async def list_versions(self, data: Data) -> ServerFiles:
        """Return all files with size and version, also from a server that takes Digest logins only."""
        require_sound(data, self.check(data))
        address = _web(data.location)
        if not address.endswith("/"):
            link = await self._http.look(data, FileLink(name_of(address), address, {}, data.size, data.checksum))
            return ServerFiles(is_folder=False, files={link.path: (link.size, link.version)})
        async with self._http.client(self._sign(data.location)) as client:
            files = await _Listing(client, data, address).read()
        check_folder(data, files, self.policy.largest)
        listed = {str(safe_path(data, file.path)): (file.size, file.version) for file in files}
        return ServerFiles(is_folder=True, files=listed)

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from a byte offset on."""
        async with self._http.client() as client, closing(read_link(client, data, link, offset)) as pieces:
            async for piece in pieces:
                yield piece

    async def open_put(self, path: str, size: int, location: str) -> PutAddress | None:
        """Make the missing folders, and return a temporary address to PUT the file to, with its header.

        None if the server takes Digest only, as each of its headers opens one request.
        """
        sent = _name_target(location, path)
        address = _web(sent)
        header = authorization(credential_for(self.policy.credentials, location)).partition(": ")[2]
        auth = self._sign(location)
        async with self._http.client(auth) as client:
            try:
                await _make_folders(client, Content(path, size, _read_nothing), address, sent)
                await _check_free(client, path, address, location, sent)
            except httpx2.RequestError as error:
                raise unsent(path, sent, describe_web_error(error)) from error
        if needs_digest(auth):
            return None
        return PutAddress(name_part(address), {"Authorization": header} if header else {})

    async def close_put(self, path: str, location: str) -> None:
        """Rename the sent file to its own name."""
        sent = _name_target(location, path)
        async with self._http.client(self._sign(location)) as client:
            await _rename(client, path, _web(sent), sent)

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file under a temporary name, and rename it when it is complete; missing folders are made."""
        sent = _name_target(location, content.path)
        address = _web(sent)
        async with self._http.client(self._sign(location)) as client:
            try:
                await _make_folders(client, content, address, sent)
                await _check_free(client, content.path, address, location, sent)
                await put(client, content, name_part(address), sent, progress)
            except httpx2.RequestError as error:
                raise unsent(content.path, sent, describe_web_error(error)) from error
            await _rename(client, content.path, address, sent)
        return sent


async def _check_free(client: httpx2.AsyncClient, path: str, address: str, location: str, sent: str) -> None:
    """Raise DataNotSent if a folder has the file's name, as some servers would replace the folder and its content.

    If the server doesn't answer this, the rename will show it.
    """
    headers = {"Depth": "0", "Content-Type": "application/xml"}
    answer = await client.request("PROPFIND", address, headers=headers, content=WANTED)
    with suppress(ElementTree.ParseError):
        if answer.is_success and read_xml(answer.content).find(f".//{DAV}collection") is not None:
            raise refuse_folder(path, location, sent)


async def _rename(client: httpx2.AsyncClient, path: str, address: str, location: str) -> None:
    """Rename a complete file from its temporary name to its own."""
    headers = {"Destination": address, "Overwrite": "T"}
    try:
        moved = await client.request("MOVE", name_part(address), headers=headers)
    except httpx2.RequestError as error:
        raise unsent(path, location, describe_web_error(error)) from error
    if not moved.is_success:
        raise unsent(path, location, describe_refusal(moved))
    if ESCAPED in urlsplit(address).path and not await _is_there(client, address):
        raise unsent(path, location, "the server gave it another name, since it can't read this one")


async def _is_there(client: httpx2.AsyncClient, address: str) -> bool:
    """Whether the file has this name now: some servers cut a name at `?` when renaming."""
    headers = {"Depth": "0", "Content-Type": "application/xml"}
    try:
        return (await client.request("PROPFIND", address, headers=headers, content=WANTED)).is_success
    except httpx2.RequestError:
        return True  # the server said so before


async def _read_nothing(offset: int) -> AsyncIterator[bytes]:
    """Yield nothing: the system sends the content, so it isn't read here."""
    return
    yield b""


def _link_file(data: Data, file: RemoteFile, headers: dict[str, str]) -> FileLink:
    return FileLink(str(safe_path(data, file.path)), file.address, headers, file.size, version=file.version)


def _name_target(location: str, path: str) -> str:
    """Return the address of a file sent to a location: below it, if that is a folder."""
    return f"{location}{quote(path)}" if location.endswith("/") else location


def _web(location: str) -> str:
    scheme, _, rest = location.partition(":")
    return f"{WEB[scheme.lower()]}:{rest}"


async def _make_folders(client: httpx2.AsyncClient, content: Content, address: str, location: str) -> None:
    """Make the folder of a file and its missing parents."""
    missing_ones: list[str] = []
    folder = urljoin(address, ".")
    while urlsplit(folder).path.strip("/"):
        answer = await client.request("MKCOL", folder)
        if answer.is_success or answer.status_code == THERE_ALREADY:
            break
        if answer.status_code != httpx2.codes.CONFLICT:  # 409 means that its parent is missing
            raise unsent(content.path, location, describe_refusal(answer))
        missing_ones.append(folder)
        folder = urljoin(folder, "..")
    for folder in reversed(missing_ones):
        answer = await client.request("MKCOL", folder)
        if not answer.is_success and answer.status_code != THERE_ALREADY:
            raise unsent(content.path, location, describe_refusal(answer))


class _Listing:
    """Lists all files below a folder, folder by folder: many servers refuse to list everything at once."""

    def __init__(self, client: httpx2.AsyncClient, data: Data, address: str) -> None:
        self._client, self._data = client, data
        self._root = unquote(urlsplit(address).path)
        self._waiting, self._seen = [address], {address}
        self._files: list[RemoteFile] = []

    async def read(self) -> list[RemoteFile]:
        """List until no folder is left."""
        while self._waiting:
            folder = self._waiting.pop()
            self._take(folder, await self._ask(folder))
            if len(self._seen) > MOST_FOLDERS or len(self._files) > MOST_FILES:
                raise missing(self._data, "it has too many files; bring an archive of them instead")
        return self._files

    async def _ask(self, folder: str) -> ElementTree.Element:
        headers = {"Depth": "1", "Content-Type": "application/xml"}  # XRootD 5 requires these capitals
        try:
            answer = await self._client.request("PROPFIND", folder, headers=headers, content=WANTED)
            if not answer.is_success:
                raise missing(self._data, describe_refusal(answer))
            return read_xml(answer.content)
        except httpx2.RequestError as error:
            raise missing(self._data, describe_web_error(error)) from error
        except ElementTree.ParseError as error:
            raise missing(self._data, f"the server's list can't be read: {error}") from error

    def _take(self, folder: str, answer: ElementTree.Element) -> None:
        entries = [(entry, self._join(folder, entry)) for entry in answer.iter(f"{DAV}response")]
        inside = [(entry, address) for entry, address in entries if self._path(address).startswith(self._root)]
        if entries and not inside:
            raise missing(self._data, f"the server lists another folder: {self._path(entries[0][1])[:200]}")
        for entry, address in inside:
            path = self._path(address)
            if entry.find(f".//{DAV}collection") is not None:
                inner = address if address.endswith("/") else f"{address}/"
                if inner not in self._seen:
                    self._seen.add(inner)
                    self._waiting.append(inner)
            elif path != self._root:
                size = read_size(self._data, entry.findtext(f".//{DAV}getcontentlength"))
                tag = quote_tag(entry.findtext(f".//{DAV}getetag") or "")
                tag = tag or entry.findtext(f".//{DAV}getlastmodified") or ""
                self._files.append(RemoteFile(path.removeprefix(self._root), size, address, tag))

    def _join(self, folder: str, entry: ElementTree.Element) -> str:
        """Return an entry's address on the server that was asked: behind a proxy, servers give their inner name."""
        try:
            address = urlsplit(urljoin(folder, (entry.findtext(f"{DAV}href") or "").strip()))
        except ValueError as error:
            raise missing(self._data, f"the server's list can't be read: {error}") from error
        asked = urlsplit(folder)
        return address._replace(scheme=asked.scheme, netloc=asked.netloc).geturl()

    @staticmethod
    def _path(address: str) -> str:
        return unquote(urlsplit(address).path)
