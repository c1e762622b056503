"""Links to files on web servers: their size and version, and reading them from any byte on without storing them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink
from sublet.data.model.retries import TRY_AGAIN, TransferRetries
from sublet.kernel.streams import closing
from sublet.movers.arrival import missing, read_number
from sublet.movers.digests import ask_digest, keeps_digests
from sublet.movers.port import Interrupted, SourceChanged
from sublet.movers.web_errors import describe_web_error, is_distrust

IDENTITY = {"Accept-Encoding": "identity"}
# Statuses of servers that don't support HEAD: a byte is requested instead
ANSWERS_NO_HEAD = frozenset({400, 403, 405, 501})
LOOK = 15.0  # seconds that a server has to describe a file


def find_version(response: httpx2.Response) -> str:
    """Return the version of a file: its ETag, or else its date."""
    return str(response.headers.get("ETag") or response.headers.get("Last-Modified", ""))


def quote_tag(tag: str) -> str:
    """Quote an ETag for a header; some servers' listings omit its quotes."""
    return f'"{tag}"' if tag and not tag.endswith('"') else tag


def is_version(response: httpx2.Response, version: str) -> bool:
    """Whether a response doesn't contradict the version that was seen before."""
    validators = [response.headers.get(name, "") for name in ("ETag", "Last-Modified")]
    return not any(validators) or version.removeprefix("W/") in [text.removeprefix("W/") for text in validators]


def is_strong(version: str) -> bool:
    """Whether a version is reliable for joining parts; a weak ETag isn't."""
    return bool(version) and not version.startswith("W/")


async def describe_link(client: httpx2.AsyncClient, data: Data, link: FileLink, address: str = "") -> FileLink:
    """Return the link with the size and version that the server reports; unchanged if the server doesn't answer.

    `address` is asked instead of the link's own, which may be signed for reading only.
    """
    retries = TransferRetries(most=3)
    while True:
        try:
            async with asyncio.timeout(LOOK):
                answer = await _ask(client, link, address or link.url)
        except httpx2.TooManyRedirects as error:
            raise missing(data, f"its address leads on and on: {error}") from error
        except httpx2.UnsupportedProtocol as error:
            raise missing(data, f"its address leads elsewhere: {error}") from error
        except (httpx2.TransportError, TimeoutError):
            return link
        if answer.status_code in (200, 206):
            checksum = link.checksum or (await ask_digest(client, link.url) if keeps_digests(answer) else "")
            return replace(link, size=_find_size(answer), version=find_version(answer), checksum=checksum)
        pause = retries.note_failure(has_progress=False) if answer.status_code in TRY_AGAIN else None
        if pause is None:
            raise missing(data, f"the server answered {answer.status_code} {answer.reason_phrase}".strip())
        await asyncio.sleep(pause)


async def _ask(client: httpx2.AsyncClient, link: FileLink, address: str) -> httpx2.Response:
    answer = await client.head(address, headers={**IDENTITY, **link.headers})
    if answer.status_code not in ANSWERS_NO_HEAD:
        return answer
    async with client.stream("GET", address, headers={**IDENTITY, **link.headers, "Range": "bytes=0-0"}) as first:
        return first


def is_part(answer: httpx2.Response) -> bool:
    """Whether a response is a part of a file; some S3 servers say so only by Content-Range."""
    return answer.status_code == 206 or (answer.status_code == 200 and "Content-Range" in answer.headers)


def _find_size(answer: httpx2.Response) -> int | None:
    if is_part(answer):
        return read_number(answer.headers.get("Content-Range", "").rpartition("/")[2])
    return read_number(answer.headers.get("Content-Length", "")) if "Content-Encoding" not in answer.headers else None


async def read_link(client: httpx2.AsyncClient, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
    """Read a file from a byte offset on.

    Raise Interrupted if a retry may help, SourceChanged if the file has changed.
    """
    headers = {**IDENTITY, **link.headers}
    if offset:
        headers |= {"Range": f"bytes={offset}-"} | ({"If-Range": link.version} if is_strong(link.version) else {})
    at = offset
    try:
        async with client.stream("GET", link.url, headers=headers) as response:
            _check(response, data, link, offset)
            async with closing(response.aiter_raw()) as pieces:
                async for piece in pieces:
                    at += len(piece)
                    if link.size is not None and at > link.size:
                        raise SourceChanged(f"it has more than the {link.size} bytes that it had")
                    yield piece
    except (httpx2.TooManyRedirects, httpx2.UnsupportedProtocol) as error:
        raise missing(data, f"its address leads on and on, or elsewhere: {error}") from error
    except httpx2.TransportError as error:
        if is_distrust(error):
            raise missing(data, describe_web_error(error)) from error
        raise Interrupted(describe_web_error(error)) from error
    if link.size is not None and at != link.size:
        raise Interrupted(f"the connection ended after {at} of {link.size} bytes")


def _check(response: httpx2.Response, data: Data, link: FileLink, offset: int) -> None:
    """Check that the response is the requested part, of the version that was seen before."""
    code = response.status_code
    if code in (200, 206) and link.version and not is_version(response, link.version):
        raise SourceChanged("it changed while it was read")
    if is_part(response) and _first_byte(response) == offset:
        return
    if code == 200 and not is_part(response) and not offset:
        return
    if code in (200, 206, 416):
        raise SourceChanged("the server does not send it from where it broke off")
    why = f"the server answered {code} {response.reason_phrase}".strip()
    if code in TRY_AGAIN:
        after = response.headers.get("Retry-After", "")
        raise Interrupted(why, float(after) if after.isdecimal() else 0.0)
    raise missing(data, why)


def _first_byte(response: httpx2.Response) -> int:
    first = re.match(r"bytes (\d{1,18})-", response.headers.get("Content-Range", ""))
    return int(first[1]) if first else -1
