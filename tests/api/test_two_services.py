"""Two services of one gateway, on one database: what is decided at one counts at the other, within two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.kernel.errors import WrongCode
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import signed_in
from tests.contract.services import ask, serving
from tests.smtp import Mailbox, running_smtp

pytestmark = pytest.mark.anyio
ROOT = Person("root", operator=True)
OLGA, ANNA = "olga@example.org", "anna@example.org"
IMAGE: dict[str, Any] = {"run": None, "image": "docker://busybox", "time": "1h"}
PATIENCE = 20.0  # seconds; two are what it takes


@dataclass
class Two:
    """Both services, and whoever calls them."""

    here: Service
    there: Service
    at_here: Callers
    at_there: Callers
    mailbox: Mailbox

    async def at_both(self, name: str, **token: Any) -> tuple[httpx2.AsyncClient, httpx2.AsyncClient]:
        """Someone with one token, at each."""
        _, secret = await self.here.people.tokens.make_token(Person(name), **token)
        headers = {"authorization": f"Bearer {secret}"}
        return await self.at_here.with_headers(headers), await self.at_there.with_headers(headers)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    with running_smtp() as mailbox:
        settings: dict[str, Any] = {"mode": "gateway", "mail": mailbox.settings, "operators_read": True}
        settings["platforms"] = {"trial": {"kind": "memory", "takes": "1h"}}
        async with AsyncExitStack() as stack:
            here = await stack.enter_async_context(serving(tmp_path, **settings))
            there = await stack.enter_async_context(serving(tmp_path, loop=False, **settings))
            for name, role in ((OLGA, "operator"), (ANNA, "person")):
                await here.people.directory.add_person(ROOT, name, role)
            callers = [Callers(make_app(one, "owner"), one, stack) for one in (here, there)]
            yield Two(here, there, *callers, mailbox)


async def soon(look: Callable[[], Awaitable[int]], wanted: int) -> None:
    """Look until the answer is as it must be."""
    async with asyncio.timeout(PATIENCE):
        while await look() != wanted:  # noqa: ASYNC110 - it is asked, and does not tell
            await asyncio.sleep(0.05)


def looks(client: httpx2.AsyncClient, address: str) -> Callable[[], Awaitable[int]]:
    """Looks at an address; what is answered."""

    async def look() -> int:
        return (await client.get(address)).status_code

    return look


async def test_what_is_decided_about_people_at_one_counts_at_the_other(two: Two) -> None:
    here, there = two.here, two.there
    _, olga = await two.at_both(OLGA)
    _, anna = await two.at_both(ANNA)
    before = {one.id for one in await there.people.tokens.tokens(Person(ANNA))}
    page = await signed_in(two.at_there, there, ANNA)
    assert [(await one.get("/v1/whoami")).status_code for one in (olga, anna)] == [200, 200]
    assert ((await olga.get("/v1/people")).status_code, (await page.get("/web/")).status_code) == (200, 200)

    await here.people.directory.set_role(ROOT, OLGA, "person")
    await soon(looks(olga, "/v1/people"), 403)
    spare, again = await two.at_both(OLGA)
    assert (await again.get("/v1/whoami")).status_code == 200
    assert (await spare.post("/v1/sign-out")).status_code == 204
    await soon(looks(again, "/v1/whoami"), 401)
    (visit,) = [one for one in await there.people.tokens.tokens(Person(ANNA)) if one.id not in before]
    await here.people.tokens.revoke_token(ROOT, visit.id)
    await soon(looks(page, "/web/"), 303)
    page = await signed_in(two.at_there, there, ANNA)
    await here.people.directory.block(ROOT, ANNA, "left")
    await soon(looks(anna, "/v1/whoami"), 403)
    await soon(looks(page, "/web/"), 403)
    await here.people.directory.unblock(ROOT, ANNA)
    await soon(looks(anna, "/v1/whoami"), 200)


async def test_what_is_decided_about_access_at_one_counts_at_the_other_at_once(two: Two) -> None:
    here, there, anna = two.here, two.there, Person(ANNA)
    rule = {"effect": "allow", "who": "*@illinois.edu", "noun": "system", "name": "trial"}
    added = (await here.access.rules.add_rule(ROOT, **rule)).rule
    assert (await ask(there, anna, **IMAGE)).result == "NO"
    await here.people.directory.add_identity(ROOT, ANNA, "email", "anna@illinois.edu")
    assert (await ask(there, anna, **IMAGE)).result == "YES"
    assert await there.usable_platforms.usable(anna) == ["trial"]
    await here.access.rules.remove_rule(added.id, ROOT)
    assert (await ask(there, anna, **IMAGE)).result == "NO"
    await here.people.groups.add_group(ROOT, "lab")
    await here.access.rules.add_rule(ROOT, **(rule | {"who": "group:lab"}))
    await here.people.groups.join_group(ROOT, "lab", ANNA)
    assert (await ask(there, anna, **IMAGE)).result == "YES"
    await here.people.groups.leave_group(ROOT, "lab", ANNA)
    assert await there.usable_platforms.usable(anna) == []
    request = (await there.access.requests.ask_access(anna, "system", "trial", "floods")).request
    await here.access.requests.grant_access(request.id, ROOT)
    assert (await ask(there, anna, **IMAGE)).result == "YES"


async def test_a_code_that_one_sent_is_tried_at_the_other_and_its_tries_are_counted_at_both(two: Two) -> None:
    await two.here.people.signing_in.ask_code(ANNA)
    await two.mailbox.comes_for(ANNA, 1)
    token, _ = await two.there.people.signing_in.sign_in_by_code(ANNA, two.mailbox.code(ANNA, 1))
    assert token.person == ANNA
    await two.there.people.signing_in.ask_code(ANNA)
    await two.mailbox.comes_for(ANNA, 2)
    for service in (two.here, two.there, two.here, two.there, two.here):
        with pytest.raises(WrongCode):
            await service.people.signing_in.sign_in_by_code(ANNA, "00000000")
    with pytest.raises(WrongCode):
        await two.there.people.signing_in.sign_in_by_code(ANNA, two.mailbox.code(ANNA, 2))


class Stream(httpx2.AsyncBaseTransport):
    """Goes on until the service ends it: unlike other clients in this process, it knows when the answer has begun."""

    def __init__(self, callers: Callers) -> None:
        self.callers, self.begun, self.ended = callers, asyncio.Event(), asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        scope = {"type": "http", "method": "GET", "path": request.url.path, "query_string": request.url.query}
        scope |= {"headers": [(name.lower(), value) for name, value in request.headers.raw], "http_version": "1.1"}
        scope |= {"raw_path": request.url.raw_path, "scheme": "http", "root_path": "", "server": None, "client": None}

        async def receive() -> dict[str, Any]:
            await self.ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert message["status"] == 200
                self.begun.set()

        await self.callers.app(scope, receive, send)
        self.ended.set()
        return httpx2.Response(200)


async def test_what_is_being_streamed_ends_when_its_asker_may_have_it_no_more(two: Two) -> None:
    await two.here.access.rules.add_rule(ROOT, effect="allow", who="*", noun="system", name="trial")
    session = await two.here.sessions.accept((await ask(two.here, Person(ANNA), **IMAGE)).offers[0].id, Person(ANNA))
    addresses = {"events": "/v1/events", "logs": f"/v1/sessions/{session.id}/logs?follow=true"}
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:

        async def begin(callers: Callers, secret: str, what: str) -> Stream:
            stream = Stream(callers)
            headers = {"authorization": f"Bearer {secret}", "accept": "text/event-stream"}
            client = httpx2.AsyncClient(transport=stream, base_url="http://broker.test", headers=headers)
            tasks.create_task(client.get(addresses[what]))
            await stream.begun.wait()
            return stream

        (_, olga), (token, revoked), (_, anna) = [
            await two.here.people.tokens.make_token(Person(name)) for name in (OLGA, ANNA, ANNA)
        ]
        demoted = await begin(two.at_here, olga, "logs")
        ended = await begin(two.at_there, revoked, "events")
        others = [await begin(at, anna, what) for at in (two.at_here, two.at_there) for what in addresses]
        await two.here.people.directory.set_role(ROOT, OLGA, "person")
        await demoted.ended.wait()
        await two.here.people.tokens.revoke_token(ROOT, token.id)
        await ended.ended.wait()
        assert not any(one.ended.is_set() for one in others)
        await two.here.people.directory.block(ROOT, ANNA)
    assert all(one.ended.is_set() for one in others)
