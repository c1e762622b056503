"""Many who watch events cost one look at the database, and each hears of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.events import Event, EventKind
from sublet.kernel.clock import utc_now
from sublet.service import Service
from tests.contract.services import ME, OTHER, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(tmp_path, loop=False) as made:
        yield made


async def write(service: Service, person: str, session: str, detail: str) -> None:
    """Something happens, as another process writes it: nobody here is told."""
    await service.store.write(lambda tx: tx.events.add(utc_now(), session, person, EventKind.RUNNING, detail))


async def take(events: AsyncIterator[Event | None], count: int) -> list[str]:
    """The details of the next so many."""
    details: list[str] = []
    async with asyncio.timeout(30):
        async for event in events:
            details += [event.detail] if event else []
            if len(details) == count:
                break
    return details


async def test_each_hears_of_their_own_whoever_wrote_it(service: Service) -> None:
    mine, theirs = service.events.watch(ME), service.events.watch(OTHER)
    hearing = asyncio.gather(take(mine, 2), take(theirs, 1))
    await asyncio.sleep(0)
    await write(service, ME.name, "s1", "first")
    await write(service, OTHER.name, "s2", "other")
    await write(service, ME.name, "s1", "second")
    await service.signals.announce()
    assert await hearing == [["first", "second"], ["other"]]


async def test_nothing_is_missed_between_the_first_look_and_the_wait(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sublet.booking.event_feed.LOOK", 0.05)
    watching = service.events.watch(ME)
    for number in range(20):
        hearing = asyncio.create_task(take(watching, 1))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        await write(service, ME.name, "s1", f"no-{number}")
        assert await hearing == [f"no-{number}"]
        watching = service.events.watch(ME, after=number + 1)


async def test_hundreds_who_watch_a_quiet_service_read_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = [0], service.store.read

    async def counted(work: Any) -> Any:
        reads[0] += 1
        return await read(work)

    monkeypatch.setattr(service.store, "read", counted)
    hearing = [asyncio.create_task(take(service.events.watch(ME), 1)) for _ in range(200)]
    async with asyncio.timeout(60):
        before = -1000
        while reads[0] - before > 4:  # once a second for all, because another process may have written
            before = reads[0]
            await asyncio.sleep(2)  # what is counted is how much is read in so long
    await write(service, ME.name, "s1", "now")
    await service.signals.announce()
    assert await asyncio.gather(*hearing) == [["now"]] * 200


async def test_that_connections_are_shown_to_be_alive_reads_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sublet.notices.events.QUIET", 0.01)
    looks, events = [0], service.events.events

    async def counted(*words: Any, **more: Any) -> Any:
        looks[0] += 1
        return await events(*words, **more)

    monkeypatch.setattr(service.events, "events", counted)
    signs = 0
    async for event in service.events.watch(ME):
        signs += event is None
        if signs == 50:
            break
    assert looks[0] <= 2  # at first, and when all are rung for because it isn't known yet what came
    hearing = asyncio.create_task(take(service.events.watch(ME), 1))
    await write(service, ME.name, "s1", "after signs of life")
    assert await hearing == ["after signs of life"]
