"""Sessions on a real Slurm site, carried by a service: paused where they are, and one after another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind
from sublet.data.model.throughput import Hop
from sublet.kernel.errors import UnsafeSite
from sublet.kernel.settings import Settings
from sublet.service import Service
from tests.clocks import SettableClock, set_clock
from tests.contract.services import ME, ask, reach
from tests.real.clusters import Cluster, small, ssh_options, until
from tests.real.staging import begin, over
from tests.sites import Site

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service(site: Site, home: Path) -> AsyncIterator[Service]:
    quick = {"poll": 0.3, "look": 0.1, "patience": 1, "grace": 1, "calls": 100}
    far = {"kind": "slurm", "host": site.host, "user": "researcher", "ssh": ssh_options(site), **quick}
    here = {"kind": "local"}
    settings = Settings.load(home, platforms={"far": far, "here": here}, poll="PT0.2S")
    async with open_service(settings, now=SettableClock()) as opened:
        yield opened


async def test_a_session_after_another_waits_in_slurms_own_queue(service: Service, site: Site) -> None:
    first = await begin(service, run=["sh", "-c", "until [ -e go ]; do sleep 0.1; done"])
    running = await reach(service, first.id, lambda session: session.phase is Phase.RUNNING)
    second = await begin(service, run=["true"], after=[first.id[:8]])
    here = await begin(service, run=["true"], after=[first.id], platform="here", queue=None)
    queued = await reach(service, second.id, lambda session: "Slurm job" in session.condition)
    assert queued.condition.startswith(f"waits for {first.id[:8]} to complete; Slurm job ")
    assert "(Dependency)" in queued.condition
    held = await reach(service, here.id, lambda session: bool(session.condition))
    assert (held.phase, held.condition) == (Phase.WAITING, f"waits for {first.id[:8]} to complete")
    site.on("researcher@login", "touch", f".sublet/sessions/{running.id}/work/go")
    ends = [await over(service, one.id) for one in (first, second, here)]
    assert [one.phase for one in ends] == [Phase.COMPLETED] * 3


async def test_disk_of_a_node_is_asked_of_slurm_and_what_is_staged_is_measured(
    service: Service, site: Site, tmp_path: Path
) -> None:
    (cube := tmp_path / "cube.fits").write_bytes(bytes(30_000_000))
    held = {"run": ["sh", "-c", "until [ -e go ]; do sleep 0.1; done"], "data": str(cube), "disk": "200MiB"}
    first = await begin(service, **held)
    running = await reach(service, first.id, lambda session: session.phase is Phase.RUNNING)
    job = site.on("researcher@login", "scontrol", "show", "job", "--oneliner", running.own_id)
    assert "MinTmpDiskNode=200M" in job
    site.on("researcher@login", "touch", f".sublet/sessions/{running.id}/work/go")
    done = await over(service, first.id)
    assert done.phase is Phase.COMPLETED
    assert done.staged is not None
    moved = [transfer for transfer in await service.transfers.list_recent() if transfer.system == "far"]
    assert sum(transfer.bytes for transfer in moved if transfer.hop is not Hop.SENT) == 30_000_000
    assert all(transfer.seconds <= done.staged.total_seconds() for transfer in moved)
    alike = {"platform": "far", "queue": "debug", "time": "1m", "memory": "64MiB"}
    assert (await ask(service, **held, **alike)).offers[0].offer.staging.there == ("cube.fits",)
    (other := tmp_path / "other.fits").write_bytes(b"\1" * 30_000_000)
    assert (await ask(service, **held | {"data": str(other)}, **alike)).offers[0].offer.staging.samples
    much = await ask(service, **held | {"disk": "1TiB"}, platform="far", queue="debug")
    assert much.result == "NO"
    assert much.reasons[0].field == "compute.disk.min"
    assert "500MiB disk on a node" in much.reasons[0].message


async def test_a_session_after_one_that_fails_says_so_though_slurm_only_cancels_it(service: Service) -> None:
    first = await begin(service, run=["sh", "-c", "sleep 2; exit 3"])
    await reach(service, first.id, lambda session: bool(session.job))
    second = await begin(service, run=["true"], after=[first.id])
    await reach(service, second.id, lambda session: bool(session.job))
    ended = await over(service, second.id)
    assert ended.end
    assert ended.end.kind is EndKind.DEPENDENCY_FAILED
    assert "exited with code 3" in ended.end.detail


async def test_what_waits_in_the_queue_when_its_window_has_passed_is_taken_out_of_it(
    service: Service, site: Site
) -> None:
    made = await ask(service, run=["true"], platform="far", queue="debug", time="1m", start="within 1m")
    site.on("ctl", "scontrol", "update", "PartitionName=debug", "State=DOWN")
    try:
        session = await service.sessions.accept(made.offers[0].id, ME)
        await reach(service, session.id, lambda session: "PartitionDown" in session.condition)
        set_clock(service, lambda: datetime.now(UTC) + timedelta(minutes=2))
        ended = await over(service, session.id)
        left = site.on("researcher@login", "squeue", "--me", "--noheader", "--format=%j")
    finally:
        site.on("ctl", "scontrol", "update", "PartitionName=debug", "State=UP")
    assert ended.end
    assert (ended.phase, ended.end.kind) == (Phase.FAILED, EndKind.WINDOW_PASSED)
    assert ended.end.detail == "It was still in the queue when the asked window ended."
    assert session.id not in left


async def test_a_session_is_paused_where_it_is_and_goes_on(service: Service) -> None:
    running = await begin(service, run=["sleep", "60"])
    await reach(service, running.id, lambda session: session.phase is Phase.RUNNING)
    session, how = await service.pausing.pause(running.id, ME)
    assert (session.paused, how) == (True, "stopped on its node; its time runs on")
    queued = await begin(service, run=["true"], after=[running.id])
    await reach(service, queued.id, lambda session: "Slurm job" in session.condition)
    assert (await service.pausing.pause(queued.id, ME))[1] == "held in the queue"
    await reach(service, queued.id, lambda session: session.condition.startswith("paused: held in the queue"))
    assert (await service.pausing.resume(queued.id, ME))[1] == "released in the queue"
    await reach(service, running.id, lambda session: session.paused)
    assert (await service.pausing.resume(running.id, ME))[1] == "continued on its node"
    await reach(service, running.id, lambda session: not session.paused)
    await service.sessions.cancel(running.id, ME)
    ended = await over(service, queued.id)
    assert ended.end
    assert ended.end.kind is EndKind.DEPENDENCY_FAILED
    assert "was cancelled by me" in ended.end.detail


async def test_a_bag_in_parts_is_paused_in_the_queue_and_on_its_nodes_at_once(service: Service) -> None:
    grid = {"template": ["sh", "-c", "sleep 30 # {x}"], "grid": {"x": list(range(400))}}
    session = await begin(service, run=None, bag=grid, time="4m", queue="shared")
    assert session.offer.parts > 6, "more than can run at once"
    await reach(service, session.id, lambda one: one.phase is Phase.RUNNING)
    _, how = await service.pausing.pause(session.id, ME)
    assert how == "held in the queue, and in part stopped on its node; its time runs on"
    await reach(service, session.id, lambda one: one.paused)
    _, how = await service.pausing.resume(session.id, ME)
    assert how == "released in the queue, and in part continued on its node"
    await reach(service, session.id, lambda one: not one.paused)
    assert (await service.sessions.cancel(session.id, ME)).phase is Phase.CANCELLED


async def test_a_rival_who_makes_the_directory_first_gets_no_session_into_it(site: Site, home: Path) -> None:
    site.on("keyholder@login", "sh", "-c", "umask 0; mkdir -p /scratch/early/sessions /scratch/later")
    slurm = await Cluster(site, home).open("early", directory="/scratch/early")
    with pytest.raises(UnsafeSite, match="/scratch/early belongs to keyholder"):
        await slurm.submit(small("true"), "test-early")
    site.on("keyholder@login", "rmdir", "/scratch/early/sessions", "/scratch/early")
    name = "test-later"
    await slurm.submit(small("true"), name)  # it is nobody's now
    site.on(
        "ctl", "sh", "-c", "mv /scratch/early /scratch/ours && mv /scratch/later /scratch/early"
    )  # as nobody should
    with pytest.raises(UnsafeSite, match="/scratch/early belongs to keyholder"):
        await slurm.submit(small("true"), "test-swapped")
    assert site.on("ctl", "ls", "-A", "/scratch/early").split() == ["sessions"]  # empty, and as far as it came
    site.on("ctl", "sh", "-c", "rm -r /scratch/early && mv /scratch/ours /scratch/early")
    await until(slurm, name, lambda state: state.end is not None)
    await slurm.clean(name)
    await slurm.close()
