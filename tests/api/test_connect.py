"""The proxy to interactive sessions, between a real server behind it and a real client before it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus, WebSocketException

from sublet.booking.api.connect import ConnectProxy
from sublet.booking.model.phases import Phase
from sublet.booking.session_notices import SessionNotice
from sublet.kernel.errors import NotAllowedNow, NotFound

pytestmark = pytest.mark.anyio

ID = "7c1f6b1e-8d43-4b0a-9e55-6a3f0a1d2b3c"
OTHER = "0f3b2c59-77aa-4a37-8f6f-1f64f9d7a111"
SECRET = "the-secret-of-this-session"
ENDS = datetime(2026, 11, 17, 15, 0, tzinfo=UTC)
BROWSER = {"accept": "text/html,*/*", "sec-fetch-dest": "document", "accept-encoding": "gzip"}


class OneSession:
    """A service with one session that listens somewhere."""

    def __init__(self, upstream: str) -> None:
        self.address = upstream
        self.visits = 0

    def of(self, session: str) -> str:
        return SECRET if session == ID else "another"

    async def upstream(self, id: str) -> str:
        if id != ID:
            raise NotFound(noun="session", name=id)
        if not self.address:
            raise NotAllowedNow(phase="WAITING", wanted="connected to", session=id[:8])
        return self.address

    async def may_stay(self, id: str) -> bool:
        return bool(self.address)

    async def note_visit(self, id: str) -> None:
        self.visits += 1

    async def describe(self, id: str) -> SessionNotice | None:
        phase = Phase.AVAILABLE if self.address else Phase.WAITING
        return SessionNotice("<mine>", phase, ("It waits for its turn.",), "https://here/web/sessions/x", ENDS, True)


async def echo(request: Request) -> Response:
    body = await request.body()
    said = {"path": request.url.path, "query": request.url.query, "body": body.decode(), "method": request.method}
    return JSONResponse(said | {"headers": request.headers.items()})


async def elsewhere(request: Request) -> Response:
    return RedirectResponse(f"http://{request.headers['host']}/connect/{ID}/lab", 302)


async def drip(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d;" % number

    return StreamingResponse(pieces(), headers={"set-cookie": "own=1; Path=/", "connection": "keep-alive"})


async def talk(socket: WebSocket) -> None:
    await socket.accept("v1.kernel" if "v1.kernel" in socket.scope["subprotocols"] else None)
    await socket.send_text(socket.headers.get("origin", ""))
    with contextlib.suppress(Exception):
        while True:
            message = await socket.receive()
            if message.get("text") == "leave":
                await socket.close(4001, "as asked")
                return
            if message.get("bytes") is not None:
                await socket.send_bytes(message["bytes"][::-1])
            elif message.get("text") is not None:
                await socket.send_text(message["text"].upper())


async def talk_later(socket: WebSocket) -> None:
    await asyncio.sleep(12)  # as Jupyter, which takes a WebSocket when its kernel answers: longer than ten seconds
    await talk(socket)


async def show_page(request: Request) -> Response:
    words = "<html><body>an application</body></html>"
    scripts = request.query_params.get("scripts")
    policy = {"content-security-policy": f"script-src {scripts}"} if scripts else {}
    return Response(words if request.headers["accept-encoding"] == "identity" else "packed", 200, policy, "text/html")


def upstream() -> Starlette:
    return Starlette(
        routes=[
            Route(f"/connect/{ID}/page", show_page),
            Route(f"/connect/{ID}/elsewhere", elsewhere),
            Route(f"/connect/{ID}/drip", drip),
            WebSocketRoute(f"/connect/{ID}/talk", talk),
            WebSocketRoute(f"/connect/{ID}/later", talk_later),
            Route("/{path:path}", echo, methods=["GET", "POST", "PUT", "DELETE"]),
        ]
    )


@contextlib.asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """The application on a port of its own, while this lasts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # who comes before the server is up waits
        async with serving_on(listener, app):
            yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextlib.asynccontextmanager
async def serving_on(listener: socket.socket, app: ASGIApp) -> AsyncIterator[None]:
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def proxied(address: str, session: OneSession | None = None) -> AsyncIterator[str]:
    found = session or OneSession(address)
    proxy = ConnectProxy(found, found, found)
    async with served(Starlette(routes=[Mount("/connect", app=proxy)])) as host:
        yield host
    await proxy.close()


@contextlib.asynccontextmanager
async def behind_a_socket(path: Path) -> AsyncIterator[str]:
    """A server that is reached through a Unix socket, as at the end of a tunnel."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        async with serving_on(listener, upstream()):
            yield f"unix:{path}"


@pytest.fixture(params=["tcp", "unix"])
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "unix":
            address = await stack.enter_async_context(behind_a_socket(tmp_path / "s"))
        else:
            address = f"http://{await stack.enter_async_context(served(upstream()))}"
        yield await stack.enter_async_context(proxied(address))


def client(host: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://{host}/connect/{ID}", trust_env=False)


async def test_nothing_reaches_the_session_without_its_own_secret(host: str) -> None:
    async with client(host) as caller:
        assert (await caller.get("/tree")).status_code == 401
        assert (await caller.get("/tree?token=wrong")).status_code == 401
        assert (await caller.get("/tree", headers={"authorization": "Bearer sublet_x"})).status_code == 401


async def test_the_secret_is_shown_once_and_then_remembered_for_this_session_alone(host: str) -> None:
    async with client(host) as caller:
        first = await caller.get(f"/tree?token={SECRET}")
        assert first.status_code == 200
        cookie = first.headers["set-cookie"]
        assert f"Path=/connect/{ID}/" in cookie
        assert "HttpOnly" in cookie
        assert (await caller.get("/api/contents")).json()["path"] == f"/connect/{ID}/api/contents"


async def test_neither_a_persons_token_nor_sublets_cookies_reach_the_session(host: str) -> None:
    async with client(host) as caller:
        headers = {
            "authorization": "Bearer sublet_of-a-person",
            "cookie": f"sublet-web=mine; _xsrf=2; sublet-connect-{ID}={SECRET}; username-x=y",
        }
        seen = dict((await caller.get("/tree", headers=headers)).json()["headers"])
        assert "authorization" not in seen
        assert seen["cookie"] == "_xsrf=2; username-x=y"


async def test_bodies_queries_and_escapes_arrive_as_they_were_sent(host: str) -> None:
    async with client(host) as caller:
        body = "x" * 300_000
        headers = {"authorization": f"token {SECRET}"}
        said = (await caller.post("/a%2Fb%20c?q=%20&r=ü", content=body, headers=headers)).json()
        assert (said["method"], said["body"]) == ("POST", body)
        assert said["query"] == "q=%20&r=%C3%BC"
        assert dict(said["headers"])["authorization"] == headers["authorization"]


async def test_streams_and_cookies_come_back_and_hop_by_hop_headers_do_not(host: str) -> None:
    async with client(host) as caller:
        answer = await caller.get(f"/drip?token={SECRET}")
        assert answer.content == b"0;1;2;"
        assert "own=1; Path=/" in answer.headers.get_list("set-cookie")


async def test_what_an_application_sets_for_one_visitor_is_never_sent_for_another(host: str) -> None:
    async with client(host) as first, client(host) as second:
        assert "own=1; Path=/" in (await first.get(f"/drip?token={SECRET}")).headers.get_list("set-cookie")
        seen = dict((await second.get(f"/lab?token={SECRET}")).json()["headers"])
    assert "cookie" not in seen


async def test_a_redirect_to_where_the_session_listens_points_here(host: str) -> None:
    async with client(host) as caller:
        answer = await caller.get(f"/elsewhere?token={SECRET}")
        assert answer.headers["location"] == f"/connect/{ID}/lab"


async def test_a_session_that_is_not_there_is_a_404_one_that_is_not_up_a_409_and_a_dead_one_a_502() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{free.getsockname()[1]}"
        async with proxied(dead) as host, client(host) as caller:
            down = await caller.get(f"/tree?token={SECRET}")
            assert (down.status_code, down.json()["code"]) == (502, "session-unreachable")
            assert (await caller.get(f"http://{host}/connect/no-uuid/")).status_code == 404
            assert (await caller.get(f"http://{host}/connect/{OTHER}/?token=another")).status_code == 404
    async with proxied("") as host, client(host) as caller:
        assert (await caller.get(f"/tree?token={SECRET}")).status_code == 409


async def test_a_person_who_comes_early_sees_what_it_waits_for_and_is_led_on_without_a_script() -> None:
    async with served(upstream()) as behind:
        session = OneSession("")
        async with proxied("", session) as host, client(host) as caller:
            early = await caller.get(f"/page?token={SECRET}", headers=BROWSER)
            assert early.status_code == 202
            assert '<meta http-equiv="refresh"' in early.text
            assert "It waits for its turn." in early.text
            assert "&lt;mine&gt; is being prepared" in early.text
            assert "script" not in early.headers["content-security-policy"]
            session.address = f"http://{behind}"
            ready = await caller.get(f"/page?token={SECRET}", headers=BROWSER)
            assert (ready.status_code, "an application" in ready.text) == (200, True)
            stranger = await caller.get("/page?token=wrong", headers=BROWSER | {"cookie": ""})
            assert stranger.status_code == 401
            assert "It waits" not in stranger.text


async def test_a_page_of_an_application_is_told_when_its_session_ends_and_nothing_else_is_changed(host: str) -> None:
    async with client(host) as caller:
        page = await caller.get(f"/page?token={SECRET}", headers=BROWSER)
        assert page.text.endswith(f'</html><script src="/connect/{ID}/.sublet/notice.js"></script>')
        own = await caller.get("/.sublet/notice")
        assert own.json() == {
            "ends": "2026-11-17T15:00:00+00:00",
            "warned": True,
            "page": "https://here/web/sessions/x",
        }
        assert (await caller.get("/.sublet/notice.js")).headers["content-type"].startswith("text/javascript")
        for headers in (
            {"accept-encoding": "gzip"},
            {**BROWSER, "sec-fetch-dest": "iframe"},
            {**BROWSER, "accept": "*/*"},
        ):
            assert (await caller.get("/page", headers=headers)).text == "packed"
        for scripts, is_told in (("'self' 'unsafe-eval'", True), ("'nonce-abc'", False), ("'none'", False)):
            answer = await caller.get("/page", params={"scripts": scripts}, headers=BROWSER)
            assert ("notice.js" in answer.text) is is_told
    async with client(host) as stranger:
        assert (await stranger.get("/.sublet/notice")).status_code == 401


async def test_who_comes_while_others_are_let_go_of_is_carried_too(tmp_path: Path) -> None:
    class Slow(httpx2.AsyncClient):
        async def aclose(self) -> None:
            await asyncio.sleep(0)
            await super().aclose()

    proxy = ConnectProxy(OneSession(""), OneSession(""), OneSession(""))
    proxy.clients = {str(tmp_path / name): Slow() for name in "abc"}
    new = [str(tmp_path), str(tmp_path.parent)]  # which are there
    first, again, second = await asyncio.gather(*(proxy._client(path) for path in (new[0], *new)))
    assert first is again
    assert proxy.clients == {new[0]: first, new[1]: second}
    await proxy.close()


async def test_websockets_carry_text_and_bytes_both_ways_with_their_subprotocol(host: str) -> None:
    url = f"ws://{host}/connect/{ID}/talk?token={SECRET}"
    async with connect(url, subprotocols=["v0", "v1.kernel"], origin=f"http://{host}", proxy=None) as there:  # type: ignore[arg-type, list-item]
        assert there.subprotocol == "v1.kernel"
        origin = await there.recv()
        assert str(origin).startswith(("http://127.0.0.1:", "http://localhost"))
        assert origin != f"http://{host}"  # the session sees its own address, and so accepts it
        await there.send("hello")
        assert await there.recv() == "HELLO"
        await there.send(b"\x00\x01" * 100_000)
        assert await there.recv() == b"\x01\x00" * 100_000
        await there.send("leave")
        with pytest.raises(WebSocketException):
            await there.recv()
        assert (there.close_code, there.close_reason) == (4001, "as asked")


@pytest.mark.engines
async def test_an_application_may_take_its_time_to_take_a_websocket(host: str) -> None:
    url = f"ws://{host}/connect/{ID}/later?token={SECRET}"
    async with connect(url, proxy=None, open_timeout=None) as there:
        await there.recv()
        await there.send("hello")
        assert await there.recv() == "HELLO"


async def test_a_websocket_ends_when_the_sessions_owner_may_not_come_in_any_more() -> None:
    async with served(upstream()) as behind:
        session = OneSession(f"http://{behind}")
        async with proxied("", session) as host:
            url = f"ws://{host}/connect/{ID}/talk?token={SECRET}"
            async with asyncio.timeout(20), connect(url, proxy=None) as there:
                await there.recv()
                session.address = ""
                with pytest.raises(WebSocketException):
                    await there.recv()
            assert there.close_code == 4403


async def test_a_page_of_another_site_can_not_open_a_websocket(host: str) -> None:
    headers = {"cookie": f"sublet-connect-{ID}={SECRET}"}
    with pytest.raises(InvalidStatus):
        async with connect(
            f"ws://{host}/connect/{ID}/talk",
            additional_headers=headers,
            origin="https://evil.example.org",  # type: ignore[arg-type]
            proxy=None,
        ):
            pass


async def test_who_shows_the_secret_is_sent_to_a_server_that_asks_by_itself_who_comes() -> None:
    async with proxied("see:https://hub.example.org/user/marie/lab") as host, httpx2.AsyncClient() as client:
        sent = await client.get(f"http://{host}/connect/{ID}/?token={SECRET}")
        assert (sent.status_code, sent.headers["location"]) == (307, "https://hub.example.org/user/marie/lab")
        assert sent.headers["referrer-policy"] == "no-referrer"
        assert (await client.get(f"http://{host}/connect/{ID}/")).status_code == 401
