"""Guessing tokens: it gets slow at once, for the guesser alone, however many try at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter

import httpx2
import pytest

from sublet.kernel.settings_operation import ThrottleSettings
from sublet.server.connections import Connections
from sublet.server.listening import Reception, make_server
from sublet.server.server import behind
from sublet.service import Service
from tests.api.conftest import HOST, Callers
from tests.api.test_pages import token_on

pytestmark = pytest.mark.anyio
MOST = ThrottleSettings().wrong_tokens_per_host.most


def caller(callers: Callers, host: str, secret: str) -> httpx2.AsyncClient:
    """Someone who shows a token, from a host of their own."""
    transport = httpx2.ASGITransport(app=callers.app, client=(host, 4711))
    return httpx2.AsyncClient(transport=transport, base_url=HOST, headers={"authorization": f"Bearer {secret}"})


async def test_many_guesses_at_once_are_limited_and_a_neighbour_is_not(callers: Callers) -> None:
    ann = await callers.someone("ann")
    good = ann.headers["authorization"].partition(" ")[2]

    async def guess(number: int) -> int:
        async with caller(callers, "192.0.2.1", f"sublet_wrong-{number}") as guesser:
            return (await guesser.get("/v1/whoami")).status_code

    async def work() -> int:
        async with caller(callers, "192.0.2.1", good) as neighbour:
            return (await neighbour.get("/v1/whoami")).status_code

    guesses, works = await asyncio.gather(
        asyncio.gather(*(guess(number) for number in range(3 * MOST))), asyncio.gather(*(work() for _ in range(50)))
    )
    counted = Counter(guesses)
    assert set(counted) == {401, 429}
    assert MOST <= counted[401] < 2 * MOST  # those that a moment gave back meanwhile
    assert set(works) == {200}

    async with asyncio.timeout(60), caller(callers, "192.0.2.1", "sublet_one-more") as guesser:
        while (refused := await guesser.get("/v1/sessions")).status_code == 401:
            pass  # which a moment gave back meanwhile
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json()["code"] == "too-many"

    async with caller(callers, "192.0.2.2", "sublet_wrong") as elsewhere:
        assert (await elsewhere.get("/v1/whoami")).status_code == 401


async def test_who_shows_no_token_is_not_counted(callers: Callers) -> None:
    transport = httpx2.ASGITransport(app=callers.app, client=("192.0.2.3", 4711))
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as nobody:
        said = {(await nobody.get("/v1/whoami")).status_code for _ in range(2 * MOST)}
    assert said == {401}


async def test_guessing_by_the_form_is_limited_too(callers: Callers) -> None:
    transport = httpx2.ASGITransport(app=callers.app, client=("192.0.2.4", 4711))
    ann = (await callers.someone("ann")).headers["authorization"].partition(" ")[2]
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as guesser:
        proof = await token_on(guesser, "/web/login", "/web/login")

        async def guess(secret: str) -> httpx2.Response:
            return await guesser.post("/web/login", data={"token": proof, "secret": secret})

        said = Counter([(await guess(f"sublet_wrong-{number}")).status_code for number in range(2 * MOST)])
        assert set(said) == {403, 429}
        assert MOST <= said[403] < 2 * MOST
        async with asyncio.timeout(60):
            while (refused := await guess("sublet_one-more")).status_code == 403:
                pass  # which a moment gave back meanwhile
        assert (refused.status_code, int(refused.headers["retry-after"]) >= 1) == (429, True)
        assert (await guess(ann)).status_code == 303


async def test_nobody_says_by_a_header_that_they_are_another_host(callers: Callers, service: Service) -> None:
    async def guesses(proxies: tuple[str, ...], said: list[str]) -> Counter[int]:
        """What comes of guesses that the same neighbour sends on for others."""
        settings = service.settings.model_copy(update={"proxies": proxies})
        config = make_server(callers.app, Reception(Connections(9, 9)), **behind(settings)).config
        config.load()
        transport = httpx2.ASGITransport(app=config.loaded_app, client=("192.0.2.9", 4711))
        async with httpx2.AsyncClient(transport=transport, base_url=HOST) as proxy:
            bad = {"authorization": "Bearer sublet_wrong"}
            asked = [proxy.get("/v1/whoami", headers=bad | {"x-forwarded-for": one}) for one in said]
            return Counter(answer.status_code for answer in await asyncio.gather(*asked))

    strangers = [f"198.51.{number // 250}.{number % 250}" for number in range(3 * MOST)]
    assert (await guesses((), strangers))[401] < 2 * MOST, "without a proxy of the operator's the header is nothing"
    assert await guesses(("192.0.2.9",), strangers[:MOST]) == {401: MOST}, "behind one, each is counted apart"
    pretending = [f"{one}, 203.0.113.5" for one in strangers]
    assert (await guesses(("192.0.2.9",), pretending))[401] < 2 * MOST, "and who made up more is counted as they are"
