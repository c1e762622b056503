"""A real Slurm that lets a person make reservations: its offers are booked, and what nobody takes is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, Program, State
from sublet.booking.model.offer import Offer, Reason
from sublet.booking.model.request import Window
from sublet.booking.model.session import EndKind
from sublet.platforms.conformance import RESERVING, try_rule
from sublet.platforms.slurm.platform import Slurm
from sublet.platforms.slurm.readers import pairs
from tests.engines.asking import find_booked, request_for, wait_for_end, wait_until
from tests.engines.batch_sites import opening
from tests.engines.slurm_server import SlurmSite, serve_slurm

pytestmark = [pytest.mark.anyio, pytest.mark.engines]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmSite]:
    with serve_slurm(tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


@pytest.fixture
async def slurm(site: SlurmSite, tmp_path: Path) -> AsyncIterator[Slurm]:
    async with opening(Slurm, "slurm", site, tmp_path / "home", reservations="yes", queue="shared") as platform:
        yield platform
        await platform.give_up([*await platform.list_reservations()])


def list_reserved(site: SlurmSite) -> list[dict[str, str]]:
    rows = map(pairs, site.run_as_person("scontrol --oneliner show reservation").splitlines())
    return [row for row in rows if "ReservationName" in row]


async def book(slurm: Slurm, *windows: Window, cores: int = 1) -> Offer:
    return await find_booked(slurm, request_for("slurm", 2, *windows, cores=cores))


async def test_slurm_keeps_the_promise_of_platforms_that_reserve(slurm: Slurm, site: SlurmSite) -> None:
    finding = await try_rule(slurm, *RESERVING)
    assert finding.ok, finding.detail
    assert list_reserved(site) == []
    assert (await slurm.probe({})).can_reserve, "which is told to who has not set it yet"


async def test_a_session_runs_in_its_reservation_and_nothing_is_left(slurm: Slurm, site: SlurmSite) -> None:
    slurm.lead = timedelta(seconds=5)
    booked = await book(slurm, cores=2)
    key, until = booked.reservation, datetime.now(UTC) + booked.duration
    [row] = [row for row in list_reserved(site) if key in row["ReservationName"]]
    shown = [row[name] for name in ("ReservationName", "Users", "Nodes", "CoreCnt", "PartitionName")]
    assert shown == [f"sublet-{key}", "service", "c2", "8", "shared"], "the whole node, for memory is counted here"
    assert row["StartTime"] == f"{booked.start:%Y-%m-%dT%H:%M:%S}"
    assert "PURGE_COMP" in row["Flags"]
    program = Program(("sh", "-c", "date +%s; echo $SLURM_JOB_RESERVATION; exit 5"))
    job = Job(program, booked.amounts, (), until, timedelta(0), reservation=key)
    assert await slurm.submit(job, key) == key
    await wait_until(slurm, key, lambda state: state.state is not State.UNKNOWN)
    end = await wait_for_end(slurm, key)
    assert (end.kind, end.code) == (EndKind.EXITED, 5)
    began, name = (await slurm.output(key, "stdout", 0, 200)).decode().split()
    assert int(began) >= booked.start.timestamp() - 1
    assert name == f"sublet-{key}"
    await slurm.give_up([key])
    await slurm.clean(key)
    assert list_reserved(site) == []
    assert not site.run_as_person("find .sublet -name '*' 2>/dev/null", check=False)


async def test_only_its_cores_are_reserved_where_memory_comes_with_them(slurm: Slurm, site: SlurmSite) -> None:
    site.site.on("ctl", "scontrol", "update", "PartitionName=shared", "MaxMemPerCPU=256")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    window = Window(tomorrow, tomorrow + timedelta(hours=1))
    first = await book(slurm, window, cores=2)
    second = await book(slurm, window, cores=2)
    assert first.start == second.start == tomorrow
    rows = list_reserved(site)
    assert [(row["Nodes"], row["CoreCnt"]) for row in rows] == [("c2", "2"), ("c2", "2")], "beside one another"


async def test_what_the_first_queue_has_no_room_for_is_reserved_in_the_next(site: SlurmSite, tmp_path: Path) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    window = Window(tomorrow, tomorrow + timedelta(minutes=30))
    words = ("ReservationName=care", "Users=root", "Nodes=c1", f"StartTime={tomorrow:%Y-%m-%dT%H:%M:%S}", "Duration=60")
    site.site.on("ctl", "scontrol", "update", "PartitionName=compute", "Nodes=c1")
    site.site.on("ctl", "scontrol", "create", "reservation", *words)
    try:
        async with opening(Slurm, "slurm", site, tmp_path / "home", reservations="yes") as slurm:
            booked = await book(slurm, window)
            rows = [row for row in list_reserved(site) if row["ReservationName"] != "care"]
            assert [(row["PartitionName"], row["Nodes"]) for row in rows] == [(booked.queue, "c2")]
            assert (booked.queue != "compute", booked.start) == (True, tomorrow)
            await slurm.give_up([booked.reservation])
    finally:
        site.site.on("ctl", "scontrol", "delete", "ReservationName=care")
        site.site.on("ctl", "scontrol", "update", "PartitionName=compute", "Nodes=c[1-2]")


async def test_who_may_not_reserve_is_told_so_and_gets_predicted_offers(slurm: Slurm, site: SlurmSite) -> None:
    site.let_reserve("none")
    try:
        answer = await slurm.offers(request_for("slurm", 2), ["exec"], datetime.now(UTC))
        assert [offer.terms.kind for offer in answer.offers] == ["predicted"]
        refused = await slurm.reserve(answer.offers[0], ("StartTime=now+1hour", "Duration=5", "Nodes=c1"))
        assert isinstance(refused, Reason)
        assert "Slurm reserves nothing for it: Error creating the reservation: " in refused.message
        assert not await slurm.list_reservations()
        assert not (await slurm.probe({})).can_reserve
    finally:
        site.let_reserve()


async def test_the_reservation_of_another_under_its_name_is_never_deleted(slurm: Slurm, site: SlurmSite) -> None:
    key = str(uuid4())
    words = (f"ReservationName=sublet-{key}", "Users=researcher", "Nodes=c1", "StartTime=now+1hour", "Duration=5")
    site.site.on("ctl", "scontrol", "create", "reservation", *words)
    site.run_as_person(
        f"mkdir -p .sublet/reservations/{key} && echo {slurm._guest.owner} >.sublet/reservations/{key}/owner"
    )
    assert [*await slurm.list_reservations()] == [key]
    await slurm.give_up([key])
    assert not await slurm.list_reservations()
    assert [row["Users"] for row in list_reserved(site)] == ["researcher"]
    site.site.on("ctl", "scontrol", "delete", f"ReservationName=sublet-{key}")
