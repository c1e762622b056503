"""A Slurm platform on a site of the testbed, reached over ssh with a password and a code, as a researcher does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.request import Executable
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape
from sublet.kinds.bag import BAG
from sublet.kinds.port import Setting
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.login import Login
from sublet.reach.prompts import Prompt
from tests.sites import Site

MEMORY = 128 << 20
SOON = 240.0  # seconds that anything on a site may take, on a busy machine


def ssh_options(site: Site) -> dict[str, str]:
    """What ssh must be told of a site."""
    return {"UserKnownHostsFile": site.facts["known_hosts"], "HostKeyAlias": site.name, "IdentityFile": "none"}


async def sign_in(site: Site, home: Path) -> Login:
    """Open a login as a researcher does, with a password and a code."""

    async def answer(prompt: Prompt) -> str | None:
        return str(site.facts["password"]) if "assword" in prompt.text else await asyncio.to_thread(site.fresh_code)

    login = Login(site.host, control=home / "run" / "ssh", platform="far", user="researcher", options=ssh_options(site))
    await login.open(answer)
    return login


@contextmanager
def logged_in(site: Site, home: Path) -> Iterator[Login]:
    """A login that lasts as long as the block."""
    login = asyncio.run(sign_in(site, home))
    yield login
    asyncio.run(login.close())


class Cluster:
    """A platform on a site, and what tests do with it."""

    def __init__(self, site: Site, home: Path) -> None:
        """Know the site; `home` has its login."""
        self.site, self.home = site, home

    async def open(self, name: str = "far", **settings: Any) -> Slurm:
        """A platform that polls often, as only a test may."""
        usual = {"queue": "debug", "poll": 0.5, "look": 0.25, "patience": 1, "grace": 1, "calls": 100}
        slurm = Slurm(
            name=name, host=self.site.host, user="researcher", ssh=ssh_options(self.site), **(usual | settings)
        )
        place = self.home / "platforms" / name
        place.mkdir(parents=True, exist_ok=True)
        await slurm.open(place)
        return slurm


def small(*argv: str, seconds: float = 60, **changes: Any) -> Job:
    """A small job, in a queue if one is named."""
    if "queue" in changes:
        changes["scheduler"] = SchedulerOptions(queue=changes.pop("queue"))
    values: dict[str, Any] = {
        "program": Program(argv, changes.pop("environment", {}), changes.pop("files", {})),
        "amounts": Amounts(
            changes.pop("shape", Shape(1, MEMORY)), changes.pop("count", 1), parts=changes.pop("parts", 1)
        ),
        "nodes": (),
        "until": datetime.now(UTC) + timedelta(seconds=seconds),
        "warn": timedelta(0),
    }
    return Job(**(values | changes))


async def a_bag(platform: Slurm, key: str, parts: int, seconds: float = 60, **fields: Any) -> Job:
    """A bag of small tasks in parts, as the service would make it."""
    executable = Executable("bag", fields=fields)
    tools, directory = (await platform.survey()).tools, await platform.session_directory(key)
    amounts = Amounts(Shape(1, MEMORY), 1, timedelta(seconds=seconds), parts)
    setting = Setting(f"{directory}/work", directory, amounts, (), tools)
    return small(program=BAG.ways(executable, tools)[0].program(setting), seconds=seconds, parts=parts)


async def tasks_of(platform: Slurm, key: str) -> list[dict[str, Any]]:
    """The record of a bag's tasks."""
    content = b"".join([piece async for piece in platform.read(key, "tasks.jsonl")])
    return [json.loads(line) for line in content.splitlines()]


async def until(platform: Slurm, job: str, seen: Callable[[JobState], bool]) -> JobState:
    """Its state, once something is true of it."""
    state = JobState(State.UNKNOWN)
    try:
        async with asyncio.timeout(SOON):
            while not seen(state := (await platform.ask([job]))[job]):  # noqa: ASYNC110 (it happens elsewhere)
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"after {SOON:.0f} s: {state}") from None
    return state


async def ended(platform: Slurm, job: str) -> JobState:
    """Its state once it has ended."""
    return await until(platform, job, lambda state: state.state is State.ENDED)


async def running(platform: Slurm, job: str) -> JobState:
    """Its state once it runs."""
    return await until(platform, job, lambda state: state.state is State.RUNNING)


@asynccontextmanager
async def opening(cluster: Cluster) -> AsyncIterator[Slurm]:
    """A platform on a cluster; nothing of it is left there afterwards."""
    platform = await cluster.open()
    yield platform
    for key in await platform.list_left():
        await until(platform, key, lambda state: state.state not in (State.QUEUED, State.RUNNING))
        await platform.clean(key)
        assert await platform.find(key) is None
    assert await platform.list_left() == []
    await platform.close()
