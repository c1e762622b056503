"""Systems behind platforms: probed over a login, and their record of predicted starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from sublet.booking.model.estimate import ENOUGH, Sample
from sublet.booking.views.systems import ProbeView, RecordView
from sublet.kernel.errors import LoginNeeded
from sublet.kernel.views import read
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from sublet.reach.port import Command, Outcome
from sublet.service import Service
from tests.api.conftest import Callers

pytestmark = pytest.mark.anyio
PARTITION = (
    "PartitionName=compute Default=YES MaxNodes=4 MaxTime=1-00:00:00 MinNodes=0 OverSubscribe=NO State=UP QoS=N/A"
)
ANSWERS = {
    "sinfo": "c1|compute|8|1:8:1|16000|(null)|idle\n",
    "partition": PARTITION + "\n",
    "config": "SLURM_VERSION = 24.11.5\nSelectType = select/cons_tres\n",
    "sacctmgr": "",
}


class Cluster(LocalReach):
    """A way to a cluster that answers as it was told to, once someone is signed in."""

    signed_in = True

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        if not self.signed_in:
            raise LoginNeeded(platform=self.name)
        said = [next((text for word, text in ANSWERS.items() if word in one.argv), "") for one in commands]
        return [one.reader(Outcome(0, text.encode(), b"")) for one, text in zip(commands, said, strict=True)]


@pytest.fixture
async def cluster(service: Service) -> AsyncIterator[Cluster]:
    """A cluster that the service knows."""
    way = Cluster("cluster")
    platform = Slurm(name="cluster")
    platform.use(way)
    await platform.open(service.settings.home / "platforms" / "cluster")
    service.platforms.by_name["cluster"] = platform
    yield way
    del service.platforms.by_name["cluster"]
    await platform.close()


@pytest.fixture
async def operator(callers: Callers) -> httpx2.AsyncClient:
    """Someone who may."""
    return await callers.someone("operator", operator=True)


async def test_a_probe_has_the_live_queues_and_what_differs(operator: httpx2.AsyncClient, cluster: Cluster) -> None:
    answer = await operator.post("/v1/systems/cluster/probe")
    assert answer.status_code == 200, answer.text
    view = read(ProbeView, answer.json())
    assert (view.version, view.default_queue) == ("24.11.5", "compute")
    [queue] = view.queues
    assert (queue.max_nodes, queue.max_time, queue.nodes[0].cores) == (4, timedelta(days=1), 8)
    assert {one.state for one in view.differences} == {"unknown"}


async def test_a_probe_without_a_login_says_that_one_is_needed(operator: httpx2.AsyncClient, cluster: Cluster) -> None:
    cluster.signed_in = False
    answer = await operator.post("/v1/systems/cluster/probe")
    assert (answer.status_code, answer.json()["code"]) == (409, "login-needed")
    assert answer.json()["hint"] == "sublet system login cluster"


async def test_only_operators_probe_and_only_systems_are_probed(
    ann: httpx2.AsyncClient, anonymous: httpx2.AsyncClient, operator: httpx2.AsyncClient
) -> None:
    assert (await anonymous.post("/v1/systems/memory/probe")).status_code == 401
    assert (await ann.post("/v1/systems/memory/probe")).status_code == 403
    assert (await operator.post("/v1/systems/memory/probe")).status_code == 409
    assert (await operator.post("/v1/systems/nowhere/probe")).status_code == 404


async def test_the_record_tells_how_plans_came_true(service: Service, ann: httpx2.AsyncClient) -> None:
    at = service.now() - timedelta(days=1)
    for number in range(ENOUGH + 1):
        sample = Sample("long" if number else "short", 1, 1, at, at - timedelta(minutes=number), at)
        await service.store.write(lambda tx, s=sample, n=number: tx.starts.add(f"{n:036}", "memory", s))
    view = read(RecordView, (await ann.get("/v1/systems/memory/record")).json())
    long, short = view.items
    assert (view.days, view.enough, long.samples, short.samples) == (90, ENOUGH, ENOUGH, 1)
    assert long.p50 == -timedelta(minutes=10.5)
    assert short.p50 is None
    assert (await ann.get("/v1/systems/nowhere/record")).status_code == 404
