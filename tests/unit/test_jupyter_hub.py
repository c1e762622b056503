"""What a hub says of a session's server, and what is believed of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.jupyter.hub import HubServers
from sublet.platforms.jupyter.server import ServerApi, is_jupyters
from sublet.platforms.jupyter.servers import HubFull
from sublet.platforms.rest import RestCalls
from sublet.platforms.tokens import TokenSource

pytestmark = pytest.mark.anyio
HUB = "https://hub.example.org"
KEY = "3f0c6d1e-7c1b-4ad0-9a55-0a3f6f6b2a11"


class PlayedHub:
    """A hub with one server, which answers DELETE with this status and keeps the server for so many of them."""

    def __init__(self, status: int, kept: int, pending: str | None = None) -> None:
        self.status, self.kept, self.pending = status, kept, pending
        self.name = ""
        self.deleted = 0
        self.full: httpx2.Response | None = None  # what it says when a server is to be started

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST" and self.full:
            return self.full
        if request.method == "DELETE":
            self.deleted += 1
            return httpx2.Response(404 if self.deleted > self.kept + 1 else self.status)
        if request.url.path.endswith("/progress"):
            return httpx2.Response(404)
        model: dict[str, Any] = {"pending": self.pending, "ready": self.pending is None, "url": "/user/marie/x/"}
        is_there = self.deleted <= self.kept
        return httpx2.Response(200, json={"name": "marie", "servers": {self.name: model} if is_there else {}})


Make = Callable[[PlayedHub], HubServers]


@pytest.fixture
def make() -> Make:
    def open_hub(hub: PlayedHub) -> HubServers:
        async def find_token(address: str, person: str) -> str:
            return "polonium"

        source = TokenSource("hub", HUB, "", "")
        source.find = find_token
        servers = HubServers(
            RestCalls("hub", HUB, source, httpx2.MockTransport(hub.handle)), "sublet-x", "marie", {}, True
        )
        hub.name = servers.name_server(KEY)
        return servers

    return open_hub


async def test_a_server_that_the_hub_says_to_have_stopped_and_still_has_is_not_gone(make: Make) -> None:
    hub = PlayedHub(204, kept=1)
    servers = make(hub)
    assert not await servers.stop(KEY, "marie")
    assert await servers.stop(KEY, "marie")


@pytest.mark.parametrize("status", [202, 204])
async def test_a_server_is_gone_once_the_hub_does_not_list_it(make: Make, status: int) -> None:
    assert await make(PlayedHub(status, kept=0)).stop(KEY, "marie")


async def test_a_server_that_is_stopping_is_not_gone(make: Make) -> None:
    hub = PlayedHub(202, kept=1, pending="stop")
    servers = make(hub)
    assert not await servers.stop(KEY, "marie")
    assert (await servers.look(KEY, "marie")).standing == "stopping"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "User marie already has the maximum of 1 named servers.  One must be deleted before a new one"),
        (429, "Active server limit exceeded. Try again in a few minutes."),
        (429, ""),
    ],
)
async def test_a_hub_that_is_full_has_no_room_and_refuses_nothing(make: Make, status: int, words: str) -> None:
    hub = PlayedHub(204, kept=1)
    hub.full = httpx2.Response(status, json={"message": words})
    servers = make(hub)
    with pytest.raises(HubFull, match=words.split(".")[0] or "starts no more servers now"):
        await servers.start(KEY, "marie")


@pytest.mark.parametrize(
    ("headers", "standing"),
    [
        ({"content-type": "text/html"}, ""),  # of configurable-http-proxy 5.3, before a restarted hub tells its paths
        ({"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}, ""),  # of Traefik
        ({"content-type": "application/json", "x-jupyterhub-version": "6.1.1"}, "absent"),
        ({"content-type": "application/json", "server": "nginx"}, "absent"),
        ({"content-type": "text/html", "server": "TornadoServer/6.6.1"}, "absent"),
    ],
)
async def test_a_proxy_that_knows_no_hub_now_does_not_say_that_a_server_is_gone(
    headers: dict[str, str], standing: str
) -> None:
    async def find_token(address: str, person: str) -> str:
        return "polonium"

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(
            404, headers=headers, content=b'{"message": null}' if "json" in str(headers) else b"<h1>"
        )

    source = TokenSource("hub", HUB, "", "")
    source.find = find_token
    calls = RestCalls("hub", HUB, source, httpx2.MockTransport(answer), is_own=is_jupyters)
    servers, api = HubServers(calls, "sublet-x", "marie", {}, True), ServerApi(calls, f"{HUB}/user/marie/x", "sublet-x")
    if standing:
        assert (await servers.look(KEY, "marie")).standing == standing
        assert await servers.stop(KEY, "marie")
        assert not await api.has_kernel(KEY)
        return
    for question in (servers.look(KEY, "marie"), servers.stop(KEY, "marie"), api.has_kernel(KEY)):
        with pytest.raises(PlatformUnreachable, match="from a proxy in front of it"):
            await question
    with pytest.raises(PlatformUnreachable, match="from a proxy in front of it"):
        _ = [piece async for piece in api.download("a")]


async def test_a_user_whom_the_hub_does_not_know_is_named(make: Make) -> None:
    hub = PlayedHub(204, kept=1)
    hub.full = httpx2.Response(404, json={"status": 404, "message": None})
    with pytest.raises(PlatformRefused, match="it knows no user marie") as refused:
        await make(hub).start(KEY, "marie")
    assert "Have marie sign in there once" in refused.value.advice


async def test_all_users_with_servers_are_looked_at_however_few_a_hub_gives_at_once() -> None:
    names = [f"user{number}" for number in range(23)]

    def handle(request: httpx2.Request) -> httpx2.Response:
        first = int(request.url.params.get("offset", "0"))
        page = names[first : first + min(10, int(request.url.params["limit"]))]  # a hub has a limit of its own
        models = [{"name": name, "servers": {f"sublet-x-{name}": {"started": None}}} for name in page]
        return httpx2.Response(200, json=models)

    async def find_token(address: str, person: str) -> str:
        return "polonium"

    source = TokenSource("hub", HUB, "", "")
    source.find = find_token
    calls = RestCalls("hub", HUB, source, httpx2.MockTransport(handle))
    left = await HubServers(calls, "sublet-x", "{person}", {}, True).list_left(timedelta(0))
    assert [leaving.person for leaving in left] == names
