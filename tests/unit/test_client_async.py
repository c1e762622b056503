"""The client that awaits says the same as the one that waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sublet.booking.views.moves import PauseView
from sublet.booking.views.offers import ReasonView, RunWayList, RunWayView
from sublet.booking.views.sessions import SessionPage
from sublet.client import AsyncClient, Client
from sublet.kernel.errors import ClientClosed, NoOffers, NotFound, NotOverYet, ServiceUnreachable
from tests.canned import ID, Canned, Said, a_no, a_session, a_yes, an_end, an_offer

pytestmark = pytest.mark.anyio
DONE = a_session(phase="COMPLETED", end=an_end(code=0))


async def test_ask_accept_wait_and_read(tmp_path: Path) -> None:
    canned = Canned(
        {
            "POST /v1/offersets": Said(a_yes(an_offer())),
            f"POST /v1/sessions/{ID}/accept": Said(a_session()),
            f"GET /v1/sessions/{ID}": [Said(a_session()), Said(DONE)],
            f"GET /v1/sessions/{ID}/results/out.csv": Said(b"1,2\n"),
            f"GET /v1/sessions/{ID}/archive": Said([b"tar", b"ball"]),
            f"POST /v1/sessions/{ID}/pause": Said(PauseView(session=a_session(condition="paused"), how="held")),
            f"POST /v1/sessions/{ID}/resume": Said(PauseView(session=a_session(), how="released")),
        }
    )
    with canned.serving(tmp_path) as url:
        async with AsyncClient(url) as client:
            session = await (await client.ask(run="true"))[0].accept()
            assert (await session.pause(), session.condition) == ("held", "paused")
            assert (await session.resume(), session.condition) == ("released", "")
            await session.wait()
            assert (session.phase, session.exit_code) == ("COMPLETED", 0)
            assert await session.result("out.csv") == b"1,2\n"
            await session.archive(tmp_path / "all.tar.gz")
    assert (tmp_path / "all.tar.gz").read_bytes() == b"tarball"


async def test_following_goes_on_where_a_lost_connection_stopped(tmp_path: Path) -> None:
    streams = [Said([b"one "], cut=True), Said([b"two"])]
    rest = Said(b"", headers={"Sublet-Ended": "true"})
    canned = Canned(
        {
            f"GET /v1/sessions/{ID}": Said(a_session()),
            f"GET /v1/sessions/{ID}/logs": lambda heard: streams.pop(0) if "follow" in heard.target else rest,
        }
    )
    with canned.serving(tmp_path) as url:
        async with AsyncClient(url) as client:
            session = await client.session(ID)
            assert "".join([piece async for piece in session.logs(follow=True)]) == "one two"
            assert "".join([piece async for piece in session.logs()]) == ""


async def test_lists_go_page_after_page(tmp_path: Path) -> None:
    pages = [Said(SessionPage(items=(a_session(),), next="cursor")), Said(SessionPage(items=(DONE,)))]
    with Canned({"GET /v1/sessions": pages}).serving(tmp_path) as url:
        async with AsyncClient(url) as client:
            assert [session.phase async for session in client.sessions()] == ["RUNNING", "COMPLETED"]


async def test_ways_are_explained_by_both_clients(tmp_path: Path) -> None:
    ways = (RunWayView(platform="far", way="podman", possible=False, why="podman is not installed there"),)
    with Canned({"POST /v1/offersets/ways": Said(RunWayList(items=ways))}).serving(tmp_path) as url:
        async with AsyncClient(url) as client:
            assert await client.explain_ways(notebook="https://example.org/a.ipynb") == ways
        with Client(url) as other:
            assert await asyncio.to_thread(other.explain_ways, {"image": "a:1"}) == ways


async def test_a_closed_client_says_that_it_is_closed(tmp_path: Path) -> None:
    with Canned({f"GET /v1/sessions/{ID}": Said(a_session())}).serving(tmp_path) as url:
        async with AsyncClient(url) as client:
            session = await client.session(ID)
        for use in (client.health, session.refresh, session.wait, lambda: client.ask(run="true")):
            with pytest.raises(ClientClosed, match="This client was closed"):
                await use()
        with pytest.raises(ClientClosed):
            await anext(session.logs(follow=True))
        await client.close()


async def test_errors_are_those_of_the_other_client(tmp_path: Path) -> None:
    reason = ReasonView(kind="urn:x", field="compute.cores", message="Too many cores.")
    with Canned({"POST /v1/offersets": Said(a_no(reason)), f"GET /v1/sessions/{ID}": Said(a_session())}).serving(
        tmp_path
    ) as url:
        async with AsyncClient(url) as client:
            with pytest.raises(NoOffers, match="Too many cores"):
                _ = (await client.ask(run="true"))[0]
            with pytest.raises(NotFound):
                await client.session("ffff")
            with pytest.raises(NotOverYet):
                await (await client.session(ID)).wait(timeout=0.01)
    async with AsyncClient(f"unix://{tmp_path}/nothing.sock") as client:
        with pytest.raises(ServiceUnreachable):
            await client.health()
