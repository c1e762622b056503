"""The mover of `http:` and `https:` addresses: downloads are streamed, resumed and checked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.collections import read_web_app
from sublet.data.model.credentials import credential_for
from sublet.data.model.links import FileLink, LinkedFiles, without_signature
from sublet.data.model.retries import TRY_AGAIN, TransferRetries
from sublet.kernel.errors import DataNotThere
from sublet.kernel.part_names import name_part
from sublet.kernel.public_addresses import PublicOnly
from sublet.kernel.streams import closing
from sublet.kernel.tls import trust_machine
from sublet.movers.arrival import (
    check_arrived,
    check_checksum,
    guess,
    missing,
    read_number,
    refuse,
    require_sound,
    safe_name,
)
from sublet.movers.bounded import BoundedClient, OverlongAnswer
from sublet.movers.digests import ask_digest, keeps_digests
from sublet.movers.links import describe_link, is_part, is_version, read_link
from sublet.movers.login_auth import LoginAuth, needs_digest
from sublet.movers.port import SIMPLE, Content, Interrupted, NoLinks, Policy, Progress, ServerFiles
from sublet.movers.redirects import hide_session_token, refuse_other_methods
from sublet.movers.sending import authorization, put, sign_in
from sublet.movers.web_errors import describe_web_error, is_distrust

SPEED = 10_000_000  # bytes per second, for a guess
REDIRECTS = 5
MOMENT = 2.0  # seconds that a request waits for a size
WAITS = httpx2.Timeout(60.0, connect=20.0)


@dataclass
class HttpMover:
    """Downloads files, and uploads them with PUT."""

    policy: Policy
    tries: int = 5  # failures in a row without progress
    pause: float = 0.5  # seconds before the first retry, doubled each time
    name: str = "http"
    schemes: Sequence[str] = ("http", "https")
    # Kinds of data whose address is on the web
    kinds: Sequence[str] = (SIMPLE, "S3-data-resource", "ivoa-data-resource")

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        try:
            address = httpx2.URL(data.location)
            urlsplit(data.location)
        except (httpx2.InvalidURL, ValueError) as error:
            return [*reasons, refuse(data, f"It is not an address: {error}.", nearest="https://example.org/cube.fits")]
        if not address.host:
            reasons.append(refuse(data, "The address names no host.", nearest="https://example.org/cube.fits"))
        elif known := read_web_app(data.location):
            reasons.append(refuse(data, f"It is a page of Globus' web app; write {known}.", nearest=known))
        return reasons

    async def measure(self, data: Data) -> int | None:
        """Return the Content-Length that the server reports, or None."""
        if self.check(data):
            return None
        return await self.measure_at(data.location, self._sign(data.location))

    async def measure_at(self, address: str, auth: httpx2.Auth | None) -> int | None:
        """Return the Content-Length that the server reports for an address, if it answers quickly."""
        with suppress(httpx2.HTTPError, OSError, ValueError):
            async with asyncio.timeout(MOMENT), self.client(auth) as client:
                answer = await client.head(address, headers={"accept-encoding": "identity"})
                return read_number(answer.headers.get("content-length", "")) if answer.is_success else None
        return None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long the download takes."""
        return guess(data, SPEED)

    def client(self, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        """Return an HTTP client that obeys the policy; `auth` is sent to the first host only, not after redirects."""
        trusted = trust_machine()
        transport = PublicOnly(verify=trusted) if self.policy.public_only else None
        return BoundedClient(
            verify=trusted,
            transport=transport,
            auth=auth,
            follow_redirects=True,
            max_redirects=REDIRECTS,
            timeout=WAITS,
            event_hooks={"response": [refuse_other_methods, hide_session_token]},
        )

    def _sign(self, location: str) -> httpx2.Auth | None:
        return sign_in(credential_for(self.policy.credentials, location))

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Download data into the directory, under the last name of its address."""
        require_sound(data, self.check(data))
        async with self.client(self._sign(data.location)) as client:
            await self.bring_file(client, data, target / name_of(data.location), progress)

    async def links(self, data: Data) -> LinkedFiles:
        """Link the single file that the data is."""
        require_sound(data, self.check(data))
        header = authorization(credential_for(self.policy.credentials, data.location))
        headers = {"Authorization": header.partition(": ")[2]} if header else {}
        source = without_signature(data.location)
        link = FileLink(name_of(data.location), data.location, headers, data.size, data.checksum, source=source)
        return LinkedFiles([await self.describe(data, link, self._sign(data.location))])

    async def list_versions(self, data: Data) -> ServerFiles:
        """Return the file's size and version, also from a server that takes Digest logins only."""
        require_sound(data, self.check(data))
        link = await self.look(data, FileLink(name_of(data.location), data.location, {}, data.size, data.checksum))
        return ServerFiles(is_folder=False, files={link.path: (link.size, link.version)})

    async def look(self, data: Data, link: FileLink) -> FileLink:
        """Return the link with its size and version, for whose server the data's address names the credential."""
        auth = self._sign(data.location)
        async with self.client(auth) as client:
            described = await describe_link(client, data, link)
            if needs_digest(auth) and not described.version:  # its refusal may break the connection
                described = await describe_link(client, data, link)
            return described

    async def describe(self, data: Data, link: FileLink, auth: httpx2.Auth | None) -> FileLink:
        """Return the link with its size and version; raise NoLinks if no header that it could carry opens it."""
        try:
            async with self.client() as client:
                return await describe_link(client, data, link)
        except DataNotThere as error:
            if isinstance(auth, LoginAuth):
                with suppress(httpx2.HTTPError):
                    async with self.client(auth) as client:
                        await client.head(link.url)
            if needs_digest(auth):
                raise NoLinks from error
            raise

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read the file from a byte offset on."""
        async with self.client() as client, closing(read_link(client, data, link, offset)) as pieces:
            async for piece in pieces:
                yield piece

    async def bring_file(self, client: httpx2.AsyncClient, data: Data, file: Path, progress: Progress) -> None:
        """Download a file and check it; a file that an earlier attempt finished is only checked."""
        if await asyncio.to_thread(file.is_file):
            await asyncio.to_thread(check_arrived, data, file)
        else:
            await self.download(client, data, PartFile(file), progress)

    def check_push(self, location: str) -> str:
        """Return why a file can't be put to this address; empty if it can."""
        if self.check(Data("", SIMPLE, location)):
            return "it is not an address"
        return "a web server has no folders; name the file, or write davs://" if location.endswith("/") else ""

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Upload a file with PUT."""
        async with self.client(self._sign(location)) as client:
            await put(client, content, location, location, progress)
        return location

    async def download(self, client: httpx2.AsyncClient, data: Data, part: PartFile, progress: Progress) -> None:
        """Download one file completely, and check it."""
        await self._persist(client, data, part, progress)
        if part.has_digest and not data.checksum:
            data = replace(data, checksum=await ask_digest(client, data.location))
        try:
            await asyncio.to_thread(check_arrived, data, part.path)
        except Exception:
            part.drop()  # resuming could never repair it
            raise
        part.finish()

    async def _persist(self, client: httpx2.AsyncClient, data: Data, part: PartFile, progress: Progress) -> None:
        """Retry the download until it is complete; raise DataNotThere after too many failures without progress."""
        retries, most = TransferRetries(self.tries, self.pause), part.size
        while True:
            try:
                await _download(client, data, part, progress, self.policy.largest)
                return
            except Interrupted as broken:
                # Compared with the most that ever came: a server without ranges sends the same again and again
                pause = retries.note_failure(has_progress=part.size > most, wanted=broken.pause)
                most = max(most, part.size)
                if pause is None:
                    raise missing(data, f"{broken} ({retries.failures} tries, {part.size} bytes so far)") from broken
            await asyncio.sleep(pause)


def name_of(location: str) -> str:
    """Return the local name of a file: the last part of its address."""
    address = urlsplit(location)
    return safe_name(unquote(address.path.rpartition("/")[2]), otherwise=safe_name(address.hostname or ""))


class PartFile:
    """A partly downloaded file, and the version that the server gave it."""

    def __init__(self, file: Path, part: Path | None = None) -> None:
        """Use a part file beside the final one, or at `part`."""
        self.file = file
        self.path = part or file.with_name(name_part(file.name))
        self.mark_path = self.path.with_name(f"{self.path.name}.version")
        self.has_digest = False  # whether the server stores a checksum of it

    @property
    def size(self) -> int:
        """How many bytes have come."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def mark(self) -> str:
        """The version; empty if the server gave no reliable one."""
        try:
            return self.mark_path.read_text()
        except FileNotFoundError:
            return ""

    def begin(self, mark: str) -> None:
        """Start again with an empty file of this version."""
        self.path.write_bytes(b"")
        self.mark_path.write_text(mark)

    def drop(self) -> None:
        """Delete the part file."""
        for path in (self.path, self.mark_path):
            path.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the complete file its name."""
        self.path.rename(self.file)
        self.mark_path.unlink(missing_ok=True)


async def _download(
    client: httpx2.AsyncClient, data: Data, part: PartFile, progress: Progress, largest: int = 0
) -> None:
    """Try once to download, resuming the part file if the server still has the same version."""
    headers = {"Accept-Encoding": "identity"}
    if part.size and part.mark:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": part.mark}
    try:
        async with client.stream("GET", data.location, headers=headers) as response:
            total = _accept(response, data, part)
            part.has_digest = keeps_digests(response)
            _check_size(data, part, total or 0, largest)
            with part.path.open("ab") as file:
                async with closing(response.aiter_raw()) as pieces:
                    async for piece in pieces:
                        _check_size(data, part, file.tell() + len(piece), largest)
                        file.write(piece)
                        progress(file.tell(), total)
    except (httpx2.TooManyRedirects, httpx2.UnsupportedProtocol) as error:
        raise missing(data, f"its address leads on and on, or elsewhere: {error}") from error
    except OverlongAnswer as error:
        raise missing(data, str(error)) from error
    except httpx2.TransportError as error:
        if is_distrust(error):
            raise missing(data, describe_web_error(error)) from error
        raise Interrupted(describe_web_error(error)) from error
    if total is not None and part.size != total:
        raise Interrupted(f"the connection ended after {part.size} of {total} bytes")


def _check_size(data: Data, part: PartFile, size: int, largest: int) -> None:
    """Drop the part file and raise DataNotThere if the size exceeds the limit."""
    if largest and size > largest:
        part.drop()
        raise missing(data, f"it has more than {largest} bytes, the most that is downloaded here")


def _accept(response: httpx2.Response, data: Data, part: PartFile) -> int | None:
    """Prepare the part file for the server's answer; return the total size, or None if it isn't known."""
    code = response.status_code
    length = response.headers.get("Content-Length", "")
    if is_part(response):
        span = re.fullmatch(r"bytes (\d{1,18})-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
        if not span or int(span[1]) != part.size:
            part.drop()
            raise Interrupted("the server sent another part than was asked for")
        if not is_version(response, part.mark):  # some servers ignore If-Range
            part.drop()
            raise Interrupted("it changed as it was read")
        return read_number(span[2])
    if code == 200:
        part.begin(_version(response))
        return read_number(length)
    if code == 416:
        part.drop()
        raise Interrupted("the server has less of it than before")
    reason = f"the server answered {code} {response.reason_phrase}".strip()
    if code in TRY_AGAIN:
        after = response.headers.get("Retry-After", "")
        raise Interrupted(reason, float(after) if after.isdigit() else 0.0)
    raise missing(data, reason)


def _version(response: httpx2.Response) -> str:
    """Return the version of the file: a strong ETag, or else its date."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else str(response.headers.get("Last-Modified", ""))
