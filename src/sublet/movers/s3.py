"""The mover of object stores: `s3://BUCKET/KEY`, or `s3+https://SERVER/BUCKET/KEY`; one that ends in / is a folder.

The credential for a bucket says which server and key `s3://` uses; without one, Amazon is asked anonymously.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from xml.etree import ElementTree

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, CredentialKind, credential_for
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.streams import closing
from sublet.movers.arrival import (
    check_place,
    guess,
    missing,
    refuse_folder,
    require_sound,
    safe_name,
    unsent,
)
from sublet.movers.http import SPEED, HttpMover
from sublet.movers.links import describe_link, quote_tag, read_link
from sublet.movers.port import SIMPLE, Content, Policy, Progress, PutAddress
from sublet.movers.sending import describe_refusal, put
from sublet.movers.sigv4 import SignV4
from sublet.movers.trees import MOST_FILES, RemoteFile, bring_folder, check_folder, read_size, safe_path, too_many
from sublet.movers.web_errors import describe_web_error
from sublet.movers.xml_answers import read_xml

EXAMPLE = "s3://bucket/folder/file.dat"
REGION = "us-east-1"
PART = 64 << 20  # bytes per part; the last may be smaller
MOST_PARTS = 10_000
MOST_PAGES = 10_000  # of a list, which has 1,000 objects on a page
MOST_AT_ONCE = 5 << 30  # bytes that one PUT may have
SIGNED_FOR = 12 * 3600  # seconds for which a signed address is valid


@dataclass(frozen=True)
class Place:
    """An S3 server, bucket and key."""

    server: str
    bucket: str
    key: str
    credential: Credential | None

    @property
    def address(self) -> str:
        """The object's URL."""
        return f"{self.bucket_address}/{quote(self.key, safe='/-_.~')}"

    @property
    def bucket_address(self) -> str:
        """The bucket's URL."""
        return f"{self.server}/{quote(self.bucket, safe='-_.~')}"

    @property
    def auth(self) -> SignV4 | None:
        """The signer of requests; None for anonymous requests."""
        if (known := self.credential) is None:
            return None
        secret, token = known.s3_keys
        return SignV4(known.user, secret, known.region or REGION, token=token)

    @property
    def signed(self) -> str:
        """The object's URL, signed for reading if there is a credential."""
        return self.auth.sign_url(self.address, SIGNED_FOR) if self.auth else self.address

    def below(self, path: str) -> Place:
        """Return the place of a file in this folder."""
        return Place(self.server, self.bucket, f"{self.key}{path}", self.credential)


@dataclass
class S3Mover:
    """Brings objects and folders of them, and sends files."""

    policy: Policy
    name: str = "s3"
    schemes: Sequence[str] = ("s3", "s3+https", "s3+http")
    kinds: Sequence[str] = (SIMPLE, "S3-data-resource")
    _http: HttpMover = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the HTTP mover that transfers objects."""
        self._http = HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        return check_place(data, self.check_push(data.location), EXAMPLE)

    def check_push(self, location: str) -> str:
        """Return why the address names no bucket; empty if it does."""
        try:
            place = self._locate(location)
        except ValueError as error:
            return f"it is not an address: {error}"
        if not place.server or not place.bucket:
            return "the address names no bucket"
        # Anyone who sends a web address leaves these out of it, so that it is another object's
        is_ambiguous = any(part in (".", "..") for part in (place.bucket, *place.key.split("/")))
        return "a part of its key is . or .." if is_ambiguous else ""

    def _locate(self, location: str) -> Place:
        address = urlsplit(location)
        credential = credential_for(self._keys(), location)
        if address.scheme.lower() == "s3":
            region = credential.region if credential else ""
            server = (credential.endpoint if credential else "") or _amazon(region)
            return Place(server.rstrip("/"), address.netloc, unquote(address.path.lstrip("/")), credential)
        _ = address.port  # raises ValueError now if it is wrong
        bucket, _, key = address.path.lstrip("/").partition("/")
        server = f"{address.scheme.lower().partition('+')[2]}://{address.netloc}" if address.netloc else ""
        return Place(server, unquote(bucket), unquote(key), credential)

    def _keys(self) -> list[Credential]:
        return [known for known in self.policy.credentials if known.kind is CredentialKind.S3]

    async def measure(self, data: Data) -> int | None:
        """Return the size of an object; None for a folder, as adding it up would take too long."""
        if self.check(data) or data.location.endswith("/"):
            return None
        place = self._locate(data.location)
        return await self._http.measure_at(place.address, place.auth)

    def estimate(self, data: Data) -> timedelta:
        """Guess how long the download takes."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Download an object under its own name, or all objects of a folder under their paths."""
        require_sound(data, self.check(data))
        place = self._locate(data.location)
        async with self._http.client(place.auth) as client:
            if not place.key or place.key.endswith("/"):
                files = await _list_all(client, place, data)
                await bring_folder(self._http, client, data, files, target, progress)
                return
            file = target / safe_name(place.key.rpartition("/")[2])
            await self._http.bring_file(client, replace(data, location=place.address), file, progress)

    async def links(self, data: Data) -> LinkedFiles:
        """Link an object, or all objects of a folder, by signed addresses."""
        require_sound(data, self.check(data))
        place = self._locate(data.location)
        async with self._http.client(place.auth) as client:
            if not place.key or place.key.endswith("/"):
                files = await _list_all(client, place, data)
                check_folder(data, files, self.policy.largest)
                return LinkedFiles([_link_file(place, data, file) for file in files], is_folder=True)
            name = safe_name(place.key.rpartition("/")[2])
            link = FileLink(name, place.signed, {}, data.size, data.checksum, source=place.address)
            return LinkedFiles([await describe_link(client, data, link, place.address)])

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked object from a byte offset on."""
        async with self._http.client() as client, closing(read_link(client, data, link, offset)) as pieces:
            async for piece in pieces:
                yield piece

    async def open_put(self, path: str, size: int, location: str) -> PutAddress | None:
        """Return an address signed for writing; None if the file is too large for one PUT, or there is no key."""
        place = self._locate(location)
        if not place.key or place.key.endswith("/"):
            place = place.below(path)
        elif await self._is_taken(place):
            raise refuse_folder(path, location, location)
        if place.auth is None or size > MOST_AT_ONCE:
            return None
        return PutAddress(place.auth.sign_url(place.address, SIGNED_FOR, "PUT"))

    async def _is_taken(self, place: Place) -> bool:
        async with self._http.client(place.auth) as client:
            return await _is_folder(client, place)

    async def close_put(self, path: str, location: str) -> None:
        """Do nothing: an object appears only when it is complete."""

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file as an object, in parts if it is large; it appears only when it is complete."""
        place = self._locate(location)
        sent = location
        if not place.key or place.key.endswith("/"):
            place, sent = place.below(content.path), location.rstrip("/") + "/" + content.path
        async with self._http.client(place.auth) as client:
            if sent == location and await _is_folder(client, place):
                raise refuse_folder(content.path, location, sent)
            if content.size <= PART:
                await put(client, content, place.address, sent, progress)
            else:
                await _Parts(client, content, place, sent, progress).send()
        return sent


def _amazon(region: str) -> str:
    return f"https://s3.{region}.amazonaws.com" if region else "https://s3.amazonaws.com"


async def _is_folder(client: httpx2.AsyncClient, place: Place) -> bool:
    """Whether objects exist below this name; False if listing isn't permitted."""
    with suppress(httpx2.HTTPError):
        asked = {"list-type": "2", "prefix": f"{place.key}/", "max-keys": "1"}
        answer = await client.get(place.bucket_address, params=asked)
        return answer.is_success and b"<Contents>" in answer.content
    return False


async def _list_all(client: httpx2.AsyncClient, place: Place, data: Data) -> list[RemoteFile]:
    files: list[RemoteFile] = []
    async with closing(_list(client, place, data)) as listed:
        async for file in listed:
            files.append(file)
            if len(files) > MOST_FILES:
                raise too_many(data)
    if not files:
        raise missing(data, "there is nothing below it")
    return files


async def _list(client: httpx2.AsyncClient, place: Place, data: Data) -> AsyncIterator[RemoteFile]:
    """Yield all objects of a folder."""
    asked = {"list-type": "2", "prefix": place.key}
    for _ in range(MOST_PAGES):
        try:
            answer = await client.get(place.bucket_address, params=asked)
        except httpx2.RequestError as error:
            raise missing(data, describe_web_error(error)) from error
        if not answer.is_success:
            raise missing(data, describe_refusal(answer))
        root = _parse(answer.content, data)
        for entry in root.iter("Contents"):
            key = entry.findtext("Key") or ""
            path = key.removeprefix(place.key)
            if (
                path and key.startswith(place.key) and not path.endswith("/")
            ):  # in some stores the folder itself is an object too
                tag = quote_tag(entry.findtext("ETag") or "")
                yield RemoteFile(path, read_size(data, entry.findtext("Size")), place.below(path).address, tag)
        token = root.findtext("NextContinuationToken")
        if root.findtext("IsTruncated") != "true" or not token:
            return
        asked["continuation-token"] = token
    raise missing(data, f"the server's list has more than {MOST_PAGES} pages")


def _link_file(place: Place, data: Data, file: RemoteFile) -> FileLink:
    path = str(safe_path(data, file.path))
    return FileLink(path, place.below(file.path).signed, size=file.size, version=file.version, source=file.address)


def _parse(text: bytes, data: Data) -> ElementTree.Element:
    """Parse an answer, and strip the namespaces of its tags."""
    try:
        root = read_xml(text)
    except ElementTree.ParseError as error:
        raise missing(data, f"the server's list can't be read: {error}") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


class _Parts:
    """A multipart upload, which becomes one object when all parts are there."""

    def __init__(
        self, client: httpx2.AsyncClient, content: Content, place: Place, location: str, progress: Progress
    ) -> None:
        self._client, self._content, self._place = client, content, place
        self._location, self._progress = location, progress
        self._size = max(PART, -(-content.size // MOST_PARTS))

    async def send(self) -> None:
        """Send all parts and have them joined; abort the upload on failure, so that it takes no space."""
        begun = await self._ask("POST", {"uploads": ""})
        upload = _parse(begun.content, Data(self._content.path, SIMPLE, self._location)).findtext("UploadId")
        if not upload:
            raise unsent(self._content.path, self._location, "the server named no upload")
        try:
            tags = [await self._send_part(upload, number) for number in range(1, self._count + 1)]
            parts = "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
                for number, tag in enumerate(tags, 1)
            )
            body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
            done = await self._ask("POST", {"uploadId": upload}, body)
            if b"<Error" in done.content:  # a server may answer 200 before it knows the outcome
                raise unsent(self._content.path, self._location, describe_refusal(done))
        except BaseException:
            with suppress(httpx2.HTTPError):
                await self._client.delete(self._place.address, params={"uploadId": upload})
            raise

    @property
    def _count(self) -> int:
        return -(-self._content.size // self._size)

    async def _send_part(self, upload: str, number: int) -> str:
        first = (number - 1) * self._size
        size = min(self._size, self._content.size - first)
        part = Content(self._content.path, size, lambda start: _window(self._content, first + start, size - start))

        def tell(done: int, _: int | None) -> None:
            self._progress(first + done, self._content.size)

        address = str(httpx2.URL(self._place.address, params={"partNumber": str(number), "uploadId": upload}))
        answer = await put(self._client, part, address, self._location, tell)
        return str(answer.headers.get("etag", ""))

    async def _ask(self, method: str, params: dict[str, str], body: bytes = b"") -> httpx2.Response:
        try:
            answer = await self._client.request(method, self._place.address, params=params, content=body)
        except httpx2.RequestError as error:
            raise unsent(self._content.path, self._location, describe_web_error(error)) from error
        if not answer.is_success:
            raise unsent(self._content.path, self._location, describe_refusal(answer))
        return answer


async def _window(content: Content, first: int, size: int) -> AsyncIterator[bytes]:
    """Read so many bytes of a file from an offset on."""
    left = size
    async with closing(content.read(first)) as pieces:
        async for piece in pieces:
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return
