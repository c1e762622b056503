"""Sessions at other brokers are extended, paused and entered from above, through one and through two of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus, WebSocketException

from sublet.booking.api.leading_on import lead_on
from sublet.booking.model.marks import Mark
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.kernel.errors import BadRequest, PlatformRefused, SessionElsewhere
from tests.brokers import RunningBroker, listening, running_broker
from tests.contract.services import ME, ask, in_phase, over, reach, serving
from tests.foreign_broker import ForeignBroker

pytestmark = pytest.mark.anyio
LONG = {"SUBLET_PLAY_TAKES": "1h"}
SITE: dict[str, Any] = {
    "slurm": {"kind": "memory"},
    "queue": {"kind": "memory", "terms": "predicted", "waits": ["0s", "0s", "1m"]},
}
HOUR = timedelta(hours=1)


class Levels:
    """A site, an aggregator above it, and one above that."""

    def __init__(self, site: RunningBroker, middle: RunningBroker, top: RunningBroker) -> None:
        self.site, self.middle, self.top = site, middle, top

    async def begin(self, platform: str, **more: Any) -> Session:
        """A session that runs at the site, as it is seen at the top."""
        answer = await ask(self.top.service, time="1h", platform=f"uksrc/cam/{platform}", **{"env": LONG, **more})
        assert answer.offers, answer.reasons
        return await self.top.service.sessions.accept(answer.offers[0].id, ME)

    async def list_levels(self) -> list[Session]:
        """The newest session that was accepted, from the top to the site."""
        pages = [
            await each.service.sessions.page(ME, active=True, limit=1) for each in (self.top, self.middle, self.site)
        ]
        return [page.items[0] for page in pages]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for all tests of this file, which share the services."""
    return "asyncio"


@pytest.fixture(scope="module")
async def standing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Levels]:
    home = tmp_path_factory.mktemp("levels")
    async with AsyncExitStack() as stack:

        async def begin(name: str, **settings: Any) -> RunningBroker:
            return await stack.enter_async_context(running_broker(home / name, **settings))

        site = await begin("site", platforms={**SITE, "here": {"kind": "local"}})
        middle = await begin("middle", brokers={"cam": site})
        yield Levels(site, middle, await begin("top", brokers={"uksrc": middle}))


@pytest.fixture
async def levels(standing: Levels) -> AsyncIterator[Levels]:
    yield standing
    for session in (await standing.top.service.sessions.page(ME, active=True)).items:
        await standing.top.service.sessions.cancel(session.id, ME)


async def test_more_time_is_given_at_the_site_and_known_at_every_level(levels: Levels) -> None:
    session = await levels.begin("slurm")
    running = await reach(levels.top.service, session.id, in_phase(Phase.RUNNING))
    longer = await levels.top.service.sessions.extend(session.id, ME, by="30m")
    assert running.until
    assert longer.until == running.until + HOUR / 2
    assert [each.until for each in await levels.list_levels()] == [longer.until] * 3
    assert [each.offer.duration for each in await levels.list_levels()] == [1.5 * HOUR] * 3
    again = await levels.top.service.sessions.extend(session.id, ME, until=longer.until + HOUR)
    assert (await levels.list_levels())[-1].until == again.until == longer.until + HOUR
    with pytest.raises(BadRequest, match="must be after the present one"):
        await levels.top.service.sessions.extend(session.id, ME, until=longer.until)


async def test_time_that_was_given_at_the_site_itself_is_seen_above(levels: Levels) -> None:
    session = await levels.begin("slurm")
    await reach(levels.top.service, session.id, in_phase(Phase.RUNNING))
    inner = (await levels.list_levels())[-1]
    longer = await levels.site.service.sessions.extend(inner.id, ME, by="2h")
    await reach(levels.top.service, session.id, lambda seen: seen.until == longer.until, seconds=60)


async def test_an_answer_that_was_lost_does_not_extend_it_twice(levels: Levels) -> None:
    session = await levels.begin("slurm")
    await reach(levels.top.service, session.id, in_phase(Phase.RUNNING))
    broker: Any = levels.top.service.platforms.of(session)
    for _ in range(2):
        await broker.lengthen(session.id, 2 * HOUR)
    assert (await levels.list_levels())[-1].offer.duration == 2 * HOUR


async def test_what_the_site_refuses_is_refused_above_in_its_words(levels: Levels) -> None:
    session = await levels.begin("queue")
    running = await reach(levels.top.service, session.id, in_phase(Phase.RUNNING))
    with pytest.raises(PlatformRefused, match="only time that is booked can be extended"):
        await levels.top.service.sessions.extend(session.id, ME, by="30m")
    seen = await levels.top.service.sessions.get(session.id, ME)
    assert (seen.until, seen.offer.duration) == (running.until, HOUR)


async def test_a_session_is_paused_and_resumed_at_the_site_from_the_top(levels: Levels) -> None:
    session = await levels.begin("slurm")
    await reach(levels.top.service, session.id, in_phase(Phase.RUNNING))
    paused, how = await levels.top.service.pausing.pause(session.id, ME)
    inner = (await levels.list_levels())[-1]
    assert how
    assert Mark.PAUSED in paused.marks & inner.marks
    seen = await reach(levels.top.service, session.id, lambda seen: "at uksrc: " in seen.condition)
    assert Mark.PAUSED in seen.marks, "also after the loop has looked at it"
    await levels.top.service.pausing.resume(session.id, ME)
    assert Mark.PAUSED not in (await levels.list_levels())[-1].marks
    await reach(levels.top.service, session.id, lambda seen: Mark.PAUSED not in seen.marks)


async def test_a_broker_that_is_no_sublet_pauses_nothing_and_extends_by_its_own_words(tmp_path: Path) -> None:
    far = ForeignBroker()
    async with (
        listening(far.app) as url,
        serving(tmp_path, platforms={"far": {"kind": "broker", "url": url}}) as service,
    ):
        answer = await ask(service, time="1h")
        session = await service.sessions.accept(answer.offers[0].id, ME)
        with pytest.raises(PlatformRefused, match="no common word for a pause"):
            await service.pausing.pause(session.id, ME)
        await service.sessions.extend(session.id, ME, by="30m")
        (wanted,) = [update for update in far.updates if "delta" in update]
        assert wanted == {
            "kind": "uri:integer-delta-update",
            "path": "schedule.available.duration",
            "delta": 1800,
            "units": "seconds",
        }


async def test_the_terminal_of_a_shell_two_brokers_away_is_entered_from_the_top(levels: Levels) -> None:
    session = await levels.begin("here", run=None, interactive="shell", memory="64MiB")
    await reach(levels.top.service, session.id, in_phase(Phase.AVAILABLE), seconds=60)
    for level, seen in zip((levels.middle, levels.top), reversed((await levels.list_levels())[:2]), strict=True):
        async with level.client() as client:
            (way,) = (await client.get(f"/v1/sessions/{seen.id}")).json()["connectors"]
        address = f"{level.url.replace('http', 'ws')}/connect/{seen.id}/ws"
        async with connect(f"{address}?{way['location'].partition('?')[2]}&term=dumb", proxy=None) as socket:
            await socket.send(b"echo sum $((40 + 2))\n")
            assert "sum 42" in await _read_until(socket, "sum 42")
        with pytest.raises(InvalidStatus):
            await connect(f"{address}?token=wrong", proxy=None)
    async with connect(f"{address}?{way['location'].partition('?')[2]}", proxy=None) as socket:
        await socket.send(b"exit\n")
        with pytest.raises(WebSocketException):
            await _read_until(socket, "what is never printed")
    assert (await over(levels.top.service, session.id)).phase is Phase.COMPLETED


async def _read_until(socket: Any, wanted: str) -> str:
    seen = ""
    async with asyncio.timeout(20):
        while wanted not in seen:
            piece = await socket.recv()
            seen += piece if isinstance(piece, str) else piece.decode()
    return seen


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/", "https://127.0.0.1:1/", "https://localhost/x", "file:///x"]
)
async def test_a_broker_leads_nobody_into_this_machines_own_network(location: str) -> None:
    with pytest.raises(SessionElsewhere):
        await lead_on(SessionElsewhere(location=location, is_own=False), "ws")
