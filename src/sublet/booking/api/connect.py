"""Reverse proxy for interactive sessions: requests and WebSockets below /connect/{session}/ go to the session.

A visitor shows the session's own secret once, as `?token=` or as `Authorization: token …`; a cookie for this one
session then remembers it. A person's token doesn't work here and is never passed on, nor are Sublet's cookies.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import AsyncIterator, Coroutine, Iterable
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit
from uuid import UUID

import httpx2
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Origin, Subprotocol

from sublet.api.problems import problem_response
from sublet.booking.api import connect_pages as door_pages
from sublet.booking.api.leading_on import WayThere, lead_on
from sublet.booking.model.phases import STARTED
from sublet.booking.model.session import ELSEWHERE
from sublet.booking.session_notices import SessionNotice
from sublet.kernel.cookies import keep_no_cookies
from sublet.kernel.errors import NotFound, NotSignedIn, SessionElsewhere, SessionUnreachable, SubletError
from sublet.kernel.streams import closing
from sublet.kernel.tls import trust_machine

COOKIE = "sublet-connect-"
OWN_HOST, ROOTED = "sublet.own_host", "sublet.rooted"  # scope keys: the host is one session's; its path had no /connect
# Headers of one connection, not of the message that travels on it (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
NOT_PASSED_ON = HOP_BY_HOP | {"host", "origin", "cookie", "authorization", "content-length"}
PATIENCE = httpx2.Timeout(None, connect=10.0)
OPENS = 120.0  # seconds for an application to accept a WebSocket: Jupyter first waits for its kernel, which may be slow
LOOK = 2.0  # seconds between two checks whether a visitor may stay
WEB = ("http", "https")
NO_WAY_IN = 4403  # the WebSocket close code: RFC 6455 leaves 4000–4999 to applications


class Doors(Protocol):
    """The part of the service that knows where sessions listen and who may stay connected."""

    async def upstream(self, id: str) -> str:
        """Return the address at which a session listens: http://127.0.0.1:41233, or unix:/path."""
        ...

    async def may_stay(self, id: str) -> bool:
        """Whether visitors of a session may stay connected."""
        ...

    async def note_visit(self, id: str) -> None:
        """Record that someone has the session open now."""
        ...


class Secrets(Protocol):
    """The source of each session's secret."""

    def of(self, session: str) -> str:
        """Return the session's own secret."""
        ...


class Notices(Protocol):
    """The source of the notices for visitors of a session."""

    async def describe(self, id: str) -> SessionNotice | None:
        """Return the notice of a session, or None if there is none."""
        ...


class ConnectProxy:
    """An ASGI application that passes requests and WebSockets on to sessions."""

    def __init__(self, doors: Doors, secrets: Secrets, notices: Notices) -> None:
        """Create a proxy to the sessions of this service."""
        self.doors, self.secrets, self.notices = doors, secrets, notices
        self.clients: dict[str, httpx2.AsyncClient] = {}  # by the Unix socket that they connect through; "" for TCP

    async def close(self) -> None:
        """Close the connections to sessions."""
        for client in list(self.clients.values()):
            await client.aclose()

    async def _client(self, through: str) -> httpx2.AsyncClient:
        """Return the HTTP client for a socket; close the clients of sockets that are gone."""
        known = self.clients.get(through)
        if known is None:
            unused = [self.clients.pop(gone) for gone in _list_gone(self.clients)]
            trusted = trust_machine(environment=False)
            transport = httpx2.AsyncHTTPTransport(verify=trusted, uds=through or None, trust_env=False)
            known = self.clients[through] = httpx2.AsyncClient(
                transport=transport,
                timeout=PATIENCE,
                follow_redirects=False,
                trust_env=False,
                cookies=keep_no_cookies(),
            )
            for client in unused:
                await client.aclose()
        return known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request, or one WebSocket, on to its session."""
        if scope["type"] == "websocket":
            await self._websocket(WebSocket(scope, receive, send))
        else:
            response = await self._http(Request(scope, receive, send))
            await response(scope, receive, send)

    async def _http(self, request: Request) -> Response:
        session = ""
        try:
            session, fresh = self._let_in(request)
            if own := await self._answer_own(request, session):
                return own
            location = await self.doors.upstream(session)
            if location.startswith(ELSEWHERE):
                return RedirectResponse(location.removeprefix(ELSEWHERE), 307, {"Referrer-Policy": "no-referrer"})
            await self.doors.note_visit(session)
            upstream, through = _place(location)
            answer = await self._pass_on(request, session, upstream, await self._client(through))
        except SessionElsewhere as there:
            return _lead_on(there)
        except SubletError as error:
            return await self._refuse(request, session, error)
        is_told = door_pages.is_navigation(request) and door_pages.can_be_told(answer.headers)
        pieces = door_pages.with_script(_raw(answer), f"/connect/{session}/") if is_told else _raw(answer)
        response = StreamingResponse(pieces, answer.status_code)
        left_out = HOP_BY_HOP | {"content-length"} if is_told else HOP_BY_HOP
        response.raw_headers = [
            (name.lower(), _point_here(value, upstream) if name.lower() == b"location" else value)
            for name, value in answer.headers.raw
            if name.decode("latin-1").lower() not in left_out
        ]
        if fresh:
            response.set_cookie(
                COOKIE + session,
                self.secrets.of(session),
                path="/" if request.scope.get(OWN_HOST) else f"/connect/{session}/",
                httponly=True,
                samesite="lax",
                secure=request.url.scheme == "https",
            )
        return response

    async def _answer_own(self, request: Request, session: str) -> Response | None:
        """Answer what the service itself serves below a session's path, a script and a notice; None for the rest."""
        path = request.scope["path"].partition(session)[2].lstrip("/")
        if path == door_pages.SCRIPT:
            return door_pages.answer_script()
        if path != door_pages.NOTICE or (notice := await self.notices.describe(session)) is None:
            return None
        if notice.phase in STARTED:
            await self.doors.note_visit(session)  # an open page polls the notice
        return door_pages.answer_notice(notice)

    async def _refuse(self, request: Request, session: str, error: SubletError) -> Response:
        """Answer a program with a problem, and a browser with a page that reloads until the session is ready."""
        if not door_pages.is_navigation(request):
            return problem_response(error)
        notice = await self.notices.describe(session) if session else None
        return door_pages.show_wait(notice) if notice and notice.is_coming else door_pages.show_error(error, notice)

    async def _pass_on(
        self, request: Request, session: str, upstream: str, client: httpx2.AsyncClient
    ) -> httpx2.Response:
        has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
        headers = self._headers(request, session, upstream)
        if door_pages.is_navigation(request):  # uncompressed, so that the script can be appended
            headers = [(name, value) for name, value in headers if name != "accept-encoding"]
            headers.append(("accept-encoding", "identity"))
        if "content-length" in request.headers:
            headers.append(("content-length", request.headers["content-length"]))
        message = client.build_request(
            request.method,
            upstream.rstrip("/") + _target(request.scope),
            headers=headers,
            content=request.stream() if has_body else None,
        )
        try:
            return await client.send(message, stream=True)
        except httpx2.HTTPError as error:
            raise SessionUnreachable(session=session[:8], why=type(error).__name__) from error

    async def _websocket(self, socket: WebSocket) -> None:
        try:
            session, _ = self._let_in(socket)
            _same_origin(socket.headers)
            way = await self._find_way(session, socket)
            left_out = {"host", "origin"} | ({"authorization"} if way.is_elsewhere else set())
            there = await way.open(
                origin=Origin(way.upstream) if "origin" in socket.headers else None,
                subprotocols=[Subprotocol(name) for name in socket.scope.get("subprotocols", ())] or None,
                additional_headers=[
                    (name, value)
                    for name, value in self._headers(socket, session, way.upstream)
                    if not name.startswith("sec-websocket-") and name not in left_out
                ],
                compression=None,
                max_size=None,
                open_timeout=OPENS,
                proxy=None,
            )
        except (SubletError, OSError, WebSocketException, TimeoutError):
            await socket.close(NO_WAY_IN)
            return
        async with there:
            await socket.accept(there.subprotocol)
            await _both_ways(socket, there, self._welcome(session, socket))

    async def _find_way(self, session: str, socket: WebSocket) -> WayThere:
        """Return how to reach a session by WebSocket: here, or at the broker that runs it."""
        try:
            upstream, through = _place(await self.doors.upstream(session))
        except SessionElsewhere as elsewhere:
            rest = _target(socket.scope).partition(f"/connect/{session}/")[2]
            return await lead_on(elsewhere, rest)
        address = f"ws://{urlsplit(upstream).netloc}{_target(socket.scope)}"
        opener = partial(unix_connect, through) if through else connect
        return WayThere(upstream.rstrip("/"), partial(opener, uri=address))

    async def _welcome(self, session: str, socket: WebSocket) -> None:
        """Record a visit now and then while visitors may stay, and close the WebSocket once they may not."""
        while await self.doors.may_stay(session):  # asked each time, because another process may have decided
            await self.doors.note_visit(session)
            await asyncio.sleep(LOOK)
        await socket.close(NO_WAY_IN)

    def _let_in(self, connection: HTTPConnection) -> tuple[str, bool]:
        """Return the session in the path, and whether its secret came in the query or a header, not a cookie."""
        path: str = connection.scope["path"]
        name = path.removeprefix(connection.scope.get("root_path", "")).lstrip("/").partition("/")[0]
        try:
            session = str(UUID(name))
        except ValueError:
            raise NotFound(noun="session", name=name[:40]) from None
        secret = self.secrets.of(session)
        kind, _, value = connection.headers.get("authorization", "").partition(" ")
        shown = [connection.query_params.get("token", ""), value if kind.lower() in {"token", "bearer"} else ""]
        if any(hmac.compare_digest(proof.encode(), secret.encode()) for proof in shown):
            return session, True
        remembered = connection.cookies.get(COOKIE + session, "")
        if hmac.compare_digest(remembered.encode(), secret.encode()):
            return session, False
        raise NotSignedIn("This session's own secret is needed.", hint="Open the address that `sublet status` shows.")

    def _headers(self, connection: HTTPConnection, session: str, upstream: str) -> list[tuple[str, str]]:
        """Return the headers that the session may see; none of them lets it act for the person elsewhere."""
        headers = [(name, value) for name, value in connection.headers.items() if name not in NOT_PASSED_ON]
        headers.append(("host", urlsplit(upstream).netloc))
        if "origin" in connection.headers:
            same = _host_of(connection.headers["origin"]) == connection.headers.get("host", "")
            headers.append(("origin", upstream.rstrip("/") if same else connection.headers["origin"]))
        if cookies := _cookies(connection.headers.getlist("cookie")):
            headers.append(("cookie", cookies))
        secret = self.secrets.of(session)
        is_shown = connection.headers.get("authorization", "").partition(" ")[2] == secret
        is_same = _host_of(connection.headers.get("origin", "")) in ("", connection.headers.get("host", ""))
        if is_shown or (connection.scope.get(ROOTED) and is_same):  # its cookie is only for /connect/…
            headers.append(("authorization", f"token {secret}"))
        return headers


def _lead_on(there: SessionElsewhere) -> Response:
    """Redirect to the broker that runs the session, but only to a web address, whatever that broker says."""
    location = str(there.values["location"])
    return RedirectResponse(location, 307) if urlsplit(location).scheme in WEB else problem_response(there)


def _list_gone(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if path and not os.path.exists(path)]


def _place(location: str) -> tuple[str, str]:
    """Return the base URL of a session, and the Unix socket to connect through or an empty text."""
    path = location.removeprefix("unix:")
    return (location, "") if path == location else ("http://localhost", path)


async def _raw(answer: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async with closing(answer.aiter_raw()) as parts:
            async for part in parts:
                yield part
    finally:
        await answer.aclose()


async def _both_ways(here: WebSocket, there: ClientConnection, welcome: Coroutine[None, None, None]) -> None:
    """Carry messages both ways until either side closes, which closes the other, or until the visitor may not stay."""
    tasks = [asyncio.create_task(work) for work in (_outwards(here, there), _inwards(here, there), welcome)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _outwards(here: WebSocket, there: ClientConnection) -> None:
    try:
        while True:
            message = await here.receive()
            if message["type"] == "websocket.disconnect":
                await there.close(_code(message.get("code")), message.get("reason") or "")
                return
            text = message.get("text")
            await there.send(text if text is not None else message.get("bytes", b""))
    except ConnectionClosed:
        return


async def _inwards(here: WebSocket, there: ClientConnection) -> None:
    try:
        async for message in there:
            await (here.send_text(message) if isinstance(message, str) else here.send_bytes(message))
    except ConnectionClosed:
        pass  # closed abnormally; the close code says why
    except WebSocketDisconnect:
        return
    await here.close(_code(there.close_code), there.close_reason or "")


def _code(code: int | None) -> int:
    """Return a close code that may be sent; the codes that only describe a broken connection become 1000."""
    return code if code is not None and code not in {1005, 1006, 1015} else 1000


def _same_origin(headers: Headers) -> None:
    """Raise NotSignedIn if another site's page opens the WebSocket: browsers would send our cookies along."""
    if "origin" in headers and _host_of(headers["origin"]) != headers.get("host", ""):
        raise NotSignedIn("Another site's page can't connect to a session.")


def _host_of(origin: str) -> str:
    return urlsplit(origin).netloc


def _target(scope: Scope) -> str:
    """Return the path and query exactly as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    return (path.partition(b"?")[0] + (b"?" + query if query else b"")).decode("latin-1")


def _point_here(location: bytes, upstream: str) -> bytes:
    """Rewrite a redirect to the session's own address so that it points here."""
    return location.removeprefix(upstream.rstrip("/").encode()) or b"/"


def _cookies(headers: Iterable[str]) -> str:
    """Return the cookies that the session itself has set, without Sublet's."""
    kept: list[str] = []
    for header in headers:
        for pair in header.split(";"):
            name = pair.partition("=")[0].strip()
            if name and not name.lower().removeprefix("__host-").startswith("sublet"):
                kept.append(pair.strip())
    return "; ".join(kept)
