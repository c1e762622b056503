"""Services with a cluster that plays, and a pilot that does nothing, for the tests of annexes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from sublet.annexes.access_point import AccessPointState, Stage
from sublet.annexes.job_queue import Listed
from sublet.annexes.lease_plans import WantedLease
from sublet.annexes.model.annex import Details, Lease, Pilot
from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.own import Contact
from sublet.annexes.status import Heard
from sublet.app import open_service
from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Executable, Request
from sublet.kernel.clock import utc_now
from sublet.kernel.settings import Settings
from sublet.kinds.port import Kind, Way
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.store.tx import Tx
from tests.clocks import SettableClock, set_clock
from tests.contract.services import ME, in_phase, reach
from tests.databases import put_database

CLUSTER = {"cluster": {"kind": "memory", "terms": "predicted", "nodes": 8, "waits": ["0s", "0s", "1s"], "takes": "1h"}}
TWO = Details(nodes=2, cores=4, lifetime=timedelta(hours=2))


class PlayedTools:
    """HTCondor's tools, as far as platforms want to know."""

    configuration = "/nowhere/tools.conf"


class KnownPoint:
    """An access point that is only known, not there."""

    tools = gathering = PlayedTools
    contact = Contact("192.0.2.7:9618", "sublet@ap", "me@ap")
    lease = timedelta(minutes=2)


class PlayedPilot(Kind):
    """A pilot in name."""

    name, uri, ours = "pilot", "urn:sublet:kind:executable:pilot", True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        return ()

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        return [Way("htcondor", contained=False, program=lambda setting: Program(("true",)))]

    def needs(self, executable: Executable) -> str:
        return "nothing"


class PlayedService(Service):
    """A service whose pilots, and the access point that they would come to, are played."""

    stage: Stage = "stopped"
    silent: Heard = Heard()
    queued: Sequence[QueuedJob] = ()

    @classmethod
    def of(cls, service: Service) -> PlayedService:
        """The same service, with what would reach an access point replaced."""
        played = cls(**{field.name: getattr(service, field.name) for field in fields(service)})
        annexes: Any = service.annexes
        annexes.access_points.access_point = played._access_point
        annexes.access_points.access_point_state = played._access_point_state
        annexes.pilot_orders.stop_pilots = played._stop_pilots
        annexes.status.hear = played._hear
        annexes.jobs.jobs = played._jobs
        annexes.inputs._look_at_inputs = annexes.naming._look_at_lines = played._look_at_nothing
        return played

    async def _access_point(self, system: str = "") -> AccessPoint:
        self.authority.require_owner()
        return cast(AccessPoint, self.annexes.access_points.point)

    async def _access_point_state(self) -> AccessPointState:
        return AccessPointState(self.stage, kind="own", url="https://example.org/condor.tar.gz")

    async def _stop_pilots(self, lease: str, numbers: Collection[int] = ()) -> bool:
        now = self.now()

        def end(tx: Tx) -> None:
            for pilot in tx.pilots.list(lease):
                if not numbers or pilot.number in numbers:
                    tx.pilots.end(lease, pilot.number, now, "its owner shut it down")

        await self.store.write(end)
        return True

    async def _hear(self) -> Heard:
        return self.silent

    async def _jobs(self, person: Person, annex: str = "") -> Listed:
        return Listed(self.queued, {})

    async def _look_at_nothing(self, *_: object) -> None:
        """No jobs wait at an access point that is not there."""


@contextlib.asynccontextmanager
async def leasing(home: Path, **settings: Any) -> AsyncIterator[PlayedService]:
    """A service whose pilots are played."""
    settings.setdefault("platforms", CLUSTER)
    put_database(home / "sublet.db")
    async with open_service(Settings.load(home, **settings), now=SettableClock()) as opened:
        cast(dict[str, Any], opened.kinds.by_name)["pilot"] = PlayedPilot()
        yield PlayedService.of(opened)


async def made(service: Service, name: str = "example", details: Details = TWO, **more: Any) -> Lease:
    """Make an annex."""
    _, lease, _ = await service.annexes.leases.lease(name, WantedLease(details, **more), ME, more=False)
    return lease


async def running(service: Service, nodes: int = 0) -> tuple[Lease, str]:
    """Make an annex whose lease runs, with pilots on so many of its nodes; the lease, and its session."""
    lease, now = await made(service), service.now()
    session = (await lease_when(service, lease.id, lambda one: bool(one.session))).session
    await reach(service, session, in_phase(Phase.RUNNING))
    await service.store.write(
        lambda tx: [tx.pilots.claim(Pilot(lease.id, number, now, f"c{number}")) for number in range(nodes)]
    )
    return lease, session


async def lease_when(service: Service, id: str, true: Callable[[Lease], bool]) -> Lease:
    """Wait until something is true of a lease."""
    async with asyncio.timeout(20):
        while True:
            lease = await service.store.read(lambda tx: tx.leases.get(id))
            assert lease is not None
            if true(lease):
                return lease
            await service.signals.wait(0.05)


def later(service: Service, much: timedelta) -> None:
    """Put the service's clock forward."""
    set_clock(service, lambda: utc_now() + much)


async def ended(service: Service, id: str) -> Lease:
    """Wait until a lease has ended."""
    return await lease_when(service, id, lambda lease: lease.ended is not None)
