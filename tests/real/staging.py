"""A service that stages data on a real Slurm site, and what tests of roads do with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import OVER, Phase
from sublet.booking.model.session import Session
from sublet.kernel.settings import Settings
from sublet.service import Service
from tests.contract.services import ME, ask
from tests.real.clusters import SOON, ssh_options
from tests.sites import Site

MIB = 1 << 20


def settings_of(site: Site, home: Path, **more: Any) -> Settings:
    quick = {"poll": 0.3, "look": 0.1, "patience": 1, "grace": 1, "calls": 100}
    far = {"kind": "slurm", "host": site.host, "user": "researcher", "ssh": ssh_options(site), **quick, **more}
    shut = far | {"downloads": False, "directory": ".sublet-shut"}
    return Settings.load(home, platforms={"far": far, "shut": shut}, poll="PT0.2S")


async def begin(service: Service, **short: Any) -> Session:
    """Ask, and take the first offer."""
    made = await ask(service, **({"platform": "far", "queue": "debug", "time": "1m", "memory": "64MiB"} | short))
    assert made.result == "YES", made.reasons
    return await service.sessions.accept(made.offers[0].id, ME)


async def over(service: Service, id: str) -> Session:
    """A session once it is over."""
    async with asyncio.timeout(SOON):
        while (session := await service.sessions.get(id, ME)).phase not in OVER:
            await service.signals.wait(0.1)
        return session


async def submitted(service: Service, id: str) -> Session:
    """A session once it has a job there."""
    async with asyncio.timeout(SOON):
        while not (session := await service.sessions.get(id, ME)).job:
            await service.signals.wait(0.1)
        return session


async def run(service: Service, **short: Any) -> Session:
    """A session that has been run to its end."""
    return await over(service, (await begin(service, **short)).id)


async def roads(service: Service, session: Session) -> list[str]:
    """How its data got there, as its events say."""
    events = await service.store.read(lambda tx: tx.events.after(session=session.id))
    return [event.detail for event in events if event.kind is EventKind.STAGED]


async def output(service: Service, session: Session) -> str:
    platform = service.platforms.get(session.offer.platform)
    return (await platform.output(session.id, "stdout", 0, 10000)).decode()


async def check_road(service: Service, session: Session, text: str, road: str) -> str:
    """That a session has completed, printed this, and had its data by this road; in which words that is told."""
    assert session.phase is Phase.COMPLETED, session.end
    assert await output(service, session) == text
    [told] = await roads(service, session)
    assert road in told, told
    return told


def find_files(home: Path, name: str) -> list[Path]:
    """What of this name lies in the service's own home."""
    return list(home.rglob(name))


SUM = ["sh", "-c", "sha256sum <cube.bin"]
