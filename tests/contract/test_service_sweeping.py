"""What is left on a system and no session needs is found and removed, without being asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import Field

from sublet.app import build_context
from sublet.booking.loop.sweeping import Sweeper, sweep
from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.platforms.memory.platform import MemoryPlatform
from tests.contract.services import ME, ask, over, serving

pytestmark = pytest.mark.anyio


class Guest(MemoryPlatform):
    """A platform that is a guest somewhere, where some things are left."""

    there: list[str] = Field(default_factory=list)
    runs: set[str] = Field(default_factory=set)
    open_: bool = False
    asked: int = 0

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        self.asked += 1
        if not self.open_:
            raise LoginNeeded(platform=self.name)
        return list(self.there)

    async def clean(self, key: str) -> None:
        if key in self.runs:
            raise PlatformRefused(platform=self.name, why="the session still runs")
        self.there.remove(key)

    async def come_home(self, key: str) -> None:
        self.there.remove(key)


async def test_only_what_no_session_needs_is_removed_and_what_runs_is_let_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        mine = (await ask(service, run=["true"])).offers[0].id
        await service.sessions.accept(mine, ME)
        await over(service, mine)
    async with serving(tmp_path, loop=False) as service:  # whose own sweeper would come in between
        guest = Guest(name="far", there=[mine, "lost", "running"], runs={"running"}, open_=True)
        service.platforms.by_name["far"] = guest
        swept = await sweep(service.platforms, service.store, "far")
        assert swept.sessions == ("lost",)
        assert guest.there == [mine, "running"]
        await service.sessions.delete(mine, ME)
        assert (await sweep(service.platforms, service.store, "far")).sessions == (mine,)


async def test_a_sweep_waits_for_a_login_and_is_done_by_itself_then(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        guest = Guest(name="far", there=["lost"])
        service.platforms.by_name["far"] = guest
        task = asyncio.create_task(
            Sweeper(
                build_context(service), service.apps.catalogue, service.scratch, pause=0.01, again=timedelta(0)
            ).run()
        )
        async with asyncio.timeout(20):
            while guest.asked < 3:  # noqa: ASYNC110 (the sweeper goes on meanwhile)
                await asyncio.sleep(0.01)
            guest.open_ = True
            while guest.there:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
