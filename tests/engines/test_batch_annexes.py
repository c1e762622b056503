"""Annexes of nodes that a real OAR and a real Grid Engine lend: real HTCondor pilots as jobs, and a job on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.gridengine_server import serve_gridengine
from tests.engines.leasing import SOON, EngineLeaser, leasing
from tests.engines.oar_server import serve_oar
from tests.serving import eventually

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def oar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineLeaser]:
    place = tmp_path_factory.mktemp("oar")
    with serve_oar(place / "site", has_condor=True) as site, leasing(site, "oar", place / "ap") as leaser:
        yield leaser


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineLeaser]:
    place = tmp_path_factory.mktemp("grid")
    with serve_gridengine(place / "site") as site, leasing(site, "gridengine", place / "ap") as leaser:
        yield leaser


def test_an_annex_on_oar_has_a_pilot_on_each_node_and_runs_a_job(oar: EngineLeaser) -> None:
    annex = oar.leases("two", "--nodes", "2")
    lease = oar.lease("two")
    assert {(node["node"], node["state"]) for node in lease["nodes"]} == {("c1", "up"), ("c2", "up")}
    assert oar.runs(annex, "echo ran") == "ran\n"
    assert oar.ends("two")["why"] == "researcher shut it down"
    eventually(lambda: not oar.list_left(), "nothing to be left", SOON, 1.0)


def test_an_annex_on_oar_whose_nodes_reach_nothing_is_split_and_runs_a_job(oar: EngineLeaser) -> None:
    with oar.closed():
        annex = oar.leases("shut", "--nodes", "1")
        assert "through the spool" in oar.types("sublet annex status shut")
        assert oar.runs(annex, "echo ran") == "ran\n"
        oar.ends("shut")
        eventually(lambda: not oar.list_left(), "nothing to be left", SOON, 1.0)


def test_an_annex_on_grid_engine_runs_a_job_and_leaves_nothing(grid: EngineLeaser) -> None:
    annex = grid.leases("one", "--nodes", "1")
    assert grid.runs(annex, "echo ran") == "ran\n"
    assert grid.ends("one")["why"] == "researcher shut it down"
    eventually(lambda: not grid.list_left(), "nothing to be left", SOON, 1.0)


def test_an_annex_on_grid_engine_whose_nodes_reach_nothing_is_split(grid: EngineLeaser) -> None:
    with grid.closed():
        annex = grid.leases("shut", "--nodes", "1")
        assert "through the spool" in grid.types("sublet annex status shut")
        assert grid.runs(annex, "echo ran") == "ran\n"
        grid.ends("shut")
        eventually(lambda: not grid.list_left(), "nothing to be left", SOON, 1.0)
