"""A real Grid Engine of two machines: a program is started on each node of a job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sublet.booking.model.request import Executable
from sublet.platforms.gridengine.platform import GridEngine
from tests.engines.asking import check_each_node, list_sleepers, request_for
from tests.engines.batch_sites import opening
from tests.engines.gridengine_server import SHARED, serve_two_nodes
from tests.engines.machines import EngineMachine
from tests.serving import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.engines]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EngineMachine, EngineMachine]]:
    with serve_two_nodes(tmp_path_factory.mktemp("two") / "machines") as machines:
        yield machines


@pytest.fixture
async def grid(sites: tuple[EngineMachine, EngineMachine], tmp_path: Path) -> AsyncIterator[GridEngine]:
    async with opening(GridEngine, "grid", sites[0], tmp_path / "home", directory=f"{SHARED}/sublet") as platform:
        yield platform


async def test_a_program_for_each_node_runs_on_each_and_the_first_that_fails_ends_all(
    grid: GridEngine, sites: tuple[EngineMachine, EngineMachine]
) -> None:
    answer = await grid.offers(request_for("grid", cores=2, nodes=2), ["exec"], datetime.now(UTC))
    assert {(offer.count, offer.queue) for offer in answer.offers} == {(2, "all.q")}, answer.reasons
    await grid.give_up([*await grid.list_reservations()])
    await check_each_node(grid)
    for machine in sites:
        eventually(lambda machine=machine: not list_sleepers(machine), "nothing to be left on any node")


async def test_where_jobs_may_start_nothing_on_their_other_nodes_each_node_is_a_no_that_says_so(
    grid: GridEngine,
) -> None:
    grid.environment = "smp"
    wanted = replace(
        request_for("grid", cores=2, nodes=2), executable=Executable("command", "test", {"each_node": True})
    )
    [reason] = (await grid.offers(wanted, ["exec"], datetime.now(UTC))).reasons
    assert (reason.field, reason.message) == (
        "executable.each_node",
        "The parallel environment smp of grid lets jobs start nothing on their other nodes.",
    )
