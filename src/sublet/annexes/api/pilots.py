"""The endpoints for pilots, over HTTPS on a separate port that serves nothing else.

    POST /pilots/LEASE/NUMBER/claim     registers a node, once: `token`, `nonce` and facts → a tar
    POST /pilots/LEASE/NUMBER/renew     returns changes: `secret`, `have` → a tar, or nothing
    POST /pilots/LEASE/NUMBER/release   the SHA-256 of the HTCondor that the node can run: `secret` → one line
    POST /pilots/LEASE/NUMBER/archive   that HTCondor: `secret` → a tar
    POST /pilots/LEASE/NUMBER/split     the node reaches this service, but not the access point: `secret`, `why`
    POST /pilots/LEASE/NUMBER/end       the pilot has ended: `secret`, `why`

An invited site fetches requests for leases here too, with the token of its invitation:

    POST /sites/NAME/wanted     lists open requests: `token` → a line each: key, nodes, cores, MiB, GPUs, seconds
    POST /sites/NAME/take       takes one of them: `token`, `request`, `nonce` → a tar
    POST /sites/NAME/ended      reports how it ended: `token`, `request`, `code`, `words`

Bodies are lines of `name=value`, so that a shell can write them; refusals are one line of text. Secrets are sent only
in bodies, and are never logged.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from sublet.kernel.errors import SubletError
from sublet.service import Service

log = structlog.get_logger()
BODY = 16 * 1024  # bytes
AT_ONCE, A_SECOND = 1000, 50  # burst, and requests per second, of one address: a site's nodes may share one
MOST_KNOWN = 10_000  # addresses that are remembered

LINES = "words"  # the only name that may be repeated, for more lines
Told = dict[str, str]
Answer = Callable[[Service, str, int, Told], Awaitable[bytes | Path]]
SiteAnswer = Callable[[Service, str, Told], Awaitable[bytes]]


def pilots_app(service: Service) -> Starlette:
    """Build the application for pilots."""
    rate = Rate()
    pilots = [_pilot_route(rate, service, what, answer) for what, answer in ANSWERS.items()]
    return Starlette(routes=[*pilots, *(_site_route(rate, service, *entry) for entry in SITE_ANSWERS.items())])


async def _claim(service: Service, lease: str, number: int, facts: Told) -> bytes:
    return await service.annexes.pilots.claim_pilot(lease, number, facts)


async def _renew(service: Service, lease: str, number: int, facts: Told) -> bytes:
    return await service.annexes.pilots.renew_pilot(lease, number, facts)


async def _end(service: Service, lease: str, number: int, facts: Told) -> bytes:
    await service.annexes.pilots.end_pilot(lease, number, facts)
    return b""


async def _split(service: Service, lease: str, number: int, facts: Told) -> bytes:
    await service.annexes.pilots.split_pilot(lease, number, facts)
    return b""


async def _release(service: Service, lease: str, number: int, facts: Told) -> bytes:
    return f"{(await service.annexes.pilots.release_for_pilot(lease, number, facts)).sha256}\n".encode()


async def _archive(service: Service, lease: str, number: int, facts: Told) -> Path:
    file = (await service.annexes.pilots.release_for_pilot(lease, number, facts)).file
    log.info("release.sent", lease=lease, number=number)
    return file


ANSWERS: dict[str, Answer] = {
    "claim": _claim,
    "renew": _renew,
    "release": _release,
    "archive": _archive,
    "split": _split,
    "end": _end,
}


async def _list_wanted(service: Service, site: str, facts: Told) -> bytes:
    return await service.annexes.invitations.list_wanted_of_site(site, facts)


async def _take(service: Service, site: str, facts: Told) -> bytes:
    return await service.annexes.invitations.take_for_site(site, facts)


async def _note_end(service: Service, site: str, facts: Told) -> bytes:
    await service.annexes.invitations.end_at_site(site, facts)
    return b""


SITE_ANSWERS: dict[str, SiteAnswer] = {"wanted": _list_wanted, "take": _take, "ended": _note_end}


def _pilot_route(rate: Rate, service: Service, what: str, answer: Answer) -> Route:
    async def asked(request: Request) -> bytes | Path:
        place = request.path_params
        return await answer(service, str(place["lease"]), int(place["number"]), await read_told(request))

    return Route(f"/pilots/{{lease}}/{{number:int}}/{what}", _endpoint(rate, what, asked), methods=["POST"])


def _site_route(rate: Rate, service: Service, what: str, answer: SiteAnswer) -> Route:
    async def asked(request: Request) -> bytes:
        return await answer(service, str(request.path_params["site"]), await read_told(request))

    return Route(f"/sites/{{site}}/{what}", _endpoint(rate, what, asked), methods=["POST"])


def _endpoint(
    rate: Rate, what: str, asked: Callable[[Request], Awaitable[bytes | Path]]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        address = request.client.host if request.client else ""
        if not rate.allows(address, time.monotonic()):
            return PlainTextResponse("Too many requests.\n", 429, {"retry-after": "1"})
        try:
            made = await asked(request)
        except SubletError as error:
            log.info("pilot.refused", what=what, path=request.url.path, address=address, why=error.message)
            return PlainTextResponse(f"{' '.join(error.message.split())}\n", error.status)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        return FileResponse(made) if isinstance(made, Path) else Response(made, media_type="application/x-tar")

    return endpoint


async def read_told(request: Request) -> Told:
    """Parse a pilot's report; raise ValueError if it is too long or cut off."""
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > BODY:
                raise ValueError("This is too long.")
    except ClientDisconnect:
        raise ValueError("This broke off.") from None
    lines = body.decode("utf-8", "replace").splitlines()
    facts: Told = {}
    for name, mark, value in (line.partition("=") for line in lines):
        clean = "".join(filter(str.isprintable, value))
        if mark:
            facts[name] = f"{facts[name]}\n{clean}" if name == LINES and name in facts else clean
    return facts


class Rate:
    """A rate limit for each address: a burst, and a number of requests per second in the long run."""

    def __init__(self) -> None:
        """Start with no addresses."""
        self._left: dict[str, tuple[float, float]] = {}  # address → the requests it has left, as of when

    def allows(self, address: str, now: float) -> bool:
        """Whether the address may send a request now; counts the request."""
        if len(self._left) > MOST_KNOWN:
            self._left.clear()
        left, then = self._left.get(address, (float(AT_ONCE), now))
        left = min(float(AT_ONCE), left + (now - then) * A_SECOND)
        self._left[address] = (max(0.0, left - 1), now)
        return left >= 1
