"""A real Grid Engine: its platform keeps the contract of every platform, and books where a user may reserve."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, Program, State
from sublet.booking.model.marks import PAUSED
from sublet.booking.model.offer import Node, Reason
from sublet.booking.model.request import Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.conformance import check_platform
from sublet.platforms.gridengine.options import words_to_reserve
from sublet.platforms.gridengine.platform import GridEngine
from sublet.platforms.gridengine.site import read_site
from tests.engines.asking import MEMORY, PATIENCE, find_booked, request_for, wait_for_end, wait_until
from tests.engines.batch_sites import opening
from tests.engines.gridengine_server import serve_gridengine
from tests.engines.machines import PERSON, EngineMachine
from tests.serving import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
GIB = 1 << 30
AS_MANAGER = "SGE_ROOT=/var/lib/gridengine SGE_CELL=default"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineMachine]:
    with serve_gridengine(tmp_path_factory.mktemp("gridengine") / "machine") as machine:
        yield machine


@pytest.fixture
async def grid(site: EngineMachine, tmp_path: Path) -> AsyncIterator[GridEngine]:
    async with opening(GridEngine, "grid", site, tmp_path / "home") as platform:
        yield platform


def job(*argv: str, minutes: int = 5, parts: int = 1, **more: str) -> Job:
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    return Job(Program(argv), Amounts(Shape(1, MEMORY), parts=parts), (), until, timedelta(0), **more)


async def test_grid_engine_keeps_the_contract_of_every_platform(grid: GridEngine) -> None:
    findings = await check_platform(grid, PATIENCE)
    assert [finding for finding in findings if not finding.ok] == []


async def test_grid_engine_tells_its_queues_and_sorts_of_node_when_it_is_probed(grid: GridEngine) -> None:
    live = await grid.probe({})
    [queue] = live.queues
    assert (live.scheduler, queue.name) == ("gridengine", "all.q")
    assert [(kind.cores, kind.gpus, kind.count) for kind in queue.nodes] == [(4, 2, 1)]


async def test_the_survey_tells_slots_memory_gpus_and_disk_of_a_node(grid: GridEngine) -> None:
    assert (await grid.survey()).nodes == (Node("gridengine", 4, 3 * GIB, 2, 20 * GIB),)
    answer = await grid.offers(request_for("grid", cores=3), ["exec"], datetime.now(UTC))
    assert {(offer.queue, offer.terms.kind) for offer in answer.offers} == {("all.q", "predicted"), ("all.q", "booked")}
    [reason] = (await grid.offers(request_for("grid", nodes=2), ["exec"], datetime.now(UTC))).reasons
    assert reason.message == "The queue all.q of grid gives at most 1 node, and 2 were asked for."
    await grid.give_up([*await grid.list_reservations()])


async def test_a_job_that_an_operator_holds_is_told_as_such_and_can_not_be_resumed(
    grid: GridEngine, site: EngineMachine
) -> None:
    fill = await grid.submit(replace(job("sleep", "300"), amounts=Amounts(Shape(4, MEMORY))), str(uuid4()))
    key = await grid.submit(replace(job("true"), amounts=Amounts(Shape(4, MEMORY))), str(uuid4()))
    await grid.pause(key)
    await wait_until(grid, key, lambda state: state.marks == PAUSED)
    site.run("sh", "-c", f"{AS_MANAGER} qhold -h o s-{key}")
    state = await wait_until(grid, key, lambda state: state.marks != PAUSED)
    assert state.condition.endswith("(by an administrator there, who alone can release it)")
    with pytest.raises(PlatformRefused, match="only an operator can release it"):
        await grid.resume(key)
    site.run("sh", "-c", f"{AS_MANAGER} qrls -h o s-{key}")
    await wait_until(grid, key, lambda state: "is held" not in state.condition)
    await grid.cancel([fill], "ann")
    assert (await wait_for_end(grid, key)).code == 0
    for each in (fill, key):
        await wait_for_end(grid, each)
        await grid.clean(each)


async def test_a_reservation_is_booked_and_its_session_runs_in_it(grid: GridEngine, site: EngineMachine) -> None:
    grid.lead = timedelta(seconds=15)
    booked = await find_booked(grid, request_for("grid", cores=2))
    key = booked.reservation
    assert f"s-{key}"[:10] in site.run_as_person("qrstat -u '*'")
    inside = replace(job("sh", "-c", "date +%s; exit 5"), amounts=booked.amounts, reservation=key)
    assert await grid.submit(inside, key) == key
    assert (await grid.ask([key]))[key].state is not State.UNKNOWN
    end = await wait_for_end(grid, key)
    assert (end.kind, end.code) == (EndKind.EXITED, 5)
    assert int(await grid.output(key, "stdout", 0, 20)) >= booked.start.timestamp() - 1
    assert [*await grid.list_reservations()] == [key]  # it lasts longer than its session did
    await grid.give_up([key])
    eventually(lambda: not site.run_as_person("qrstat -u '*'"), "the end of its deletion")
    await grid.clean(key)
    assert not site.run_as_person("find .sublet -name '*' 2>/dev/null", check=False)


async def test_who_may_not_reserve_is_told_so_and_gets_predicted_offers(grid: GridEngine, site: EngineMachine) -> None:
    site.run_script(f"export SGE_ROOT=/var/lib/gridengine; qconf -du {PERSON} arusers")
    try:
        now = datetime.now(UTC)
        tomorrow = now.replace(hour=9, minute=0, second=0, microsecond=0) + timedelta(days=1)
        answer = await grid.offers(request_for("grid", 10, Window(tomorrow, tomorrow)), ["exec"], now)
        assert [(offer.start, offer.begin, offer.terms.kind) for offer in answer.offers] == [
            (tomorrow, tomorrow, "predicted")
        ]
        [wish] = grid._list_wishes(request_for("grid"), read_site(grid._surveyor.said), None)[0]
        refused = await grid.reserve(answer.offers[0], words_to_reserve(wish, {}, tomorrow), is_named=True)
        assert isinstance(refused, Reason)
        assert "Grid Engine reserves nothing for it: " in refused.message
        assert PERSON in refused.message
        assert not await grid.list_reservations()
    finally:
        site.run_script(f"export SGE_ROOT=/var/lib/gridengine; qconf -au {PERSON} arusers")


async def test_parts_are_tasks_and_what_grid_engine_refuses_is_told_in_its_words(grid: GridEngine) -> None:
    key = str(uuid4())
    await grid.submit(job("sh", "-c", "echo part $SUBLET_PART of $SUBLET_PARTS", parts=3), key)
    assert (await wait_for_end(grid, key)).code == 0
    assert await grid.output(key, "stdout", 0, 100) == b"part 0 of 3\npart 1 of 3\npart 2 of 3\n"
    await grid.clean(key)
    with pytest.raises(PlatformRefused, match="has no queue nowhere"):
        await grid.submit(replace(job("true"), scheduler=SchedulerOptions(queue="nowhere")), other := str(uuid4()))
    assert await grid.find(other) is None
    with pytest.raises(PlatformRefused, match=r"nobody.*does not exist|unknown project"):
        await grid.submit(replace(job("true"), scheduler=SchedulerOptions(project="nobody")), other)
    assert await grid.find(other) is None


async def test_ends_are_told_by_the_accounting_where_the_job_could_not(grid: GridEngine, site: EngineMachine) -> None:
    deleted = str(uuid4())
    await grid.submit(job("sleep", "300"), deleted)
    await wait_until(grid, deleted, lambda state: state.state is State.RUNNING)
    site.run_as_person(f"export SGE_ROOT=/var/lib/gridengine; qdel s-{deleted}")
    end = await wait_for_end(grid, deleted)
    assert (end.kind, end.by) == (EndKind.CANCELLED, "someone on the system itself, not through Sublet")
    await grid.clean(deleted)
