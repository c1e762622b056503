"""What caches keep, as people look at it and remove it: by name, by age, on trial, and only who may."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.kernel.errors import BadRequest, NotFound, OperatorsOnly
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import ME, OPERATOR, OTHER, ask, over, serving
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
NOW = timedelta(0)


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    platforms = {"here": {"kind": "local", "cache": "1GiB"}, "trial": {"kind": "memory"}}
    async with serving(tmp_path, platforms=platforms) as opened:
        yield opened


async def run(service: Service, address: str, *command: str) -> str:
    offerset = await ask(service, run=list(command), data=address, time="1m", platform="here")
    session = await service.sessions.accept(offerset.offers[0].id, ME)
    return session.id


async def test_what_is_kept_is_listed_and_removed_by_its_name(service: Service, source: WebSource) -> None:
    await over(service, await run(service, source.put("/cube.fits", os.urandom(5000)), "true"))
    [report] = await service.caches.list(ME)
    [entry] = report.entries
    assert (report.platform, report.quota, report.size) == ("here", 1 << 30, 5000)
    assert (entry.label, entry.size, entry.users) == (f"cube.fits from {source.address}", 5000, ())
    assert [each.digest for each in await service.caches.remove(ME, "here", ["cube.fits"], NOW, is_trial=True)] == [
        entry.digest
    ]
    assert (await service.caches.list(ME, "here"))[0].size == 5000  # it was a trial
    assert not await service.caches.remove(ME, "here", [], timedelta(hours=1))  # it was used just now
    with pytest.raises(NotFound, match="nothing"):
        await service.caches.remove(ME, "here", ["nothing.fits"], NOW)
    assert [each.label for each in await service.caches.remove(ME, "here", [entry.short], NOW)] == [entry.label]
    assert not (await service.caches.list(ME, "here"))[0].entries


async def test_what_a_session_needs_is_not_removed(service: Service, source: WebSource, tmp_path: Path) -> None:
    session = await run(service, source.put("/needed.fits", os.urandom(5000)), "sh", "-c", "echo up; sleep 60")
    while not await service.platforms.get("here").output(session, "stdout", 0, 10):
        await service.signals.wait(0.05)
    [report] = await service.caches.list(ME)
    assert report.entries[0].users == (session,)
    with pytest.raises(BadRequest, match=f"needed by {session[:8]}"):
        await service.caches.remove(ME, "here", ["needed.fits"], NOW)
    assert not await service.caches.remove(ME, "here", [], NOW)
    await service.sessions.cancel(session, ME)
    await over(service, session)
    assert len(await service.caches.remove(ME, "here", [], NOW)) == 1


async def test_a_platform_without_a_cache_says_so(service: Service) -> None:
    with pytest.raises(BadRequest, match="trial has no cache"):
        await service.caches.list(ME, "trial")
    with pytest.raises(NotFound):
        await service.caches.remove(ME, "nowhere", [], NOW)


async def test_on_a_gateway_only_operators_look_into_caches(tmp_path: Path) -> None:
    platforms = {"here": {"kind": "local", "contained_only": True}}
    async with serving(tmp_path, loop=False, mode="gateway", platforms=platforms) as service:
        for person in (OTHER, Person("guest", guest=True)):
            with pytest.raises(OperatorsOnly):
                await service.caches.list(person)
        assert [report.platform for report in await service.caches.list(OPERATOR)] == ["here"]
