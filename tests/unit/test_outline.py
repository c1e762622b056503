"""A whole request to a system: every part with who said it and its flag, and what it costs."""

from datetime import timedelta

import pytest

from sublet.systems.catalogue import find_in_catalogue, names
from sublet.systems.model.outline import outline
from sublet.systems.model.system import Charge, NodeKind, Queue, System
from sublet.systems.model.wish import Wish

GIB = 1 << 30
HOUR = timedelta(hours=1)
NODE = NodeKind("cpu", cores=64, memory=256 * GIB)
WHOLE = Queue("whole", sharing="whole", nodes=(NODE,), max_time=48 * HOUR, charges=(Charge(2, "SU per node-hour"),))
SHARED = Queue("shared", sharing="shared", nodes=(NODE,), charges=(Charge(1, "SU per core-hour"),))
SYSTEM = System("far", queues=(WHOLE, SHARED), default_queue="whole", project="abc", project_needed="always")


def rows(system: System, wish: Wish, **sources: str) -> dict[str, tuple[str, str, str]]:
    return {row.field: (row.wanted, row.source, row.flag) for row in outline(system, wish, sources=sources).rows}


def test_every_part_has_a_value_a_source_and_a_flag() -> None:
    found = rows(SYSTEM, Wish(nodes=2, time=HOUR, memory=8 * GIB), memory="job.yaml")
    assert found["nodes"] == ("2", "you", "--nodes")
    assert found["memory"] == ("8GiB", "job.yaml", "--memory")
    assert found["project"] == ("abc", "how far was added", "--project")
    assert found["queue"] == ("not said", "the default of far", "--queue")
    assert found["cores"] == ("all 64", "default", "--cores")
    assert all(all(parts) for parts in found.values())


@pytest.mark.parametrize("name", names())
def test_of_every_system_all_parts_are_shown(name: str) -> None:
    found = rows(find_in_catalogue(name), Wish(time=HOUR))
    assert {"queue", "project", "nodes", "cores", "memory", "gpus", "time", "jobs", "option"} <= found.keys()
    assert all(source and flag for _, source, flag in found.values())


def test_whole_nodes_cost_all_of_their_cores() -> None:
    cost = outline(SYSTEM, Wish(queue="whole", nodes=2, cores=4, time=3 * HOUR)).cost
    assert cost
    assert (cost.node_hours, cost.core_hours, cost.charged, cost.coin) == (6, 384, 12, "SU")


def test_shared_nodes_cost_the_cores_that_are_taken() -> None:
    cost = outline(SYSTEM, Wish(queue="shared", time=3 * HOUR)).cost
    assert cost
    assert (cost.node_hours, cost.core_hours, cost.charged) == (0, 3, 3)


def test_what_lasts_nobody_knows_how_long_has_no_cost() -> None:
    assert outline(SYSTEM, Wish()).cost is None


def test_a_system_that_names_no_partitions_is_asked_by_qos_and_by_the_sort_of_node() -> None:
    perlmutter = find_in_catalogue("perlmutter")
    found = outline(perlmutter, Wish(queue="regular", nodes=4, time=HOUR))
    assert found.refused
    [missing] = [row for row in found.rows if row.state == "error"]
    assert (missing.field, missing.nearest) == ("constraint", "--constraint cpu, or --constraint gpu")
    fine = outline(perlmutter, Wish(queue="regular", nodes=4, time=HOUR, constraint="cpu"))
    assert not fine.refused
    assert fine.cost
    assert (fine.cost.charged, fine.cost.coin) == (4, "node-hours")
    assert all("partition" not in queue.words for queue in perlmutter.queues)


def test_an_option_that_a_centre_refuses_is_told_beside_the_memory_that_needs_it() -> None:
    found = outline(
        find_in_catalogue("stampede3"), Wish(queue="skx", nodes=1, time=HOUR, memory=8 * GIB, options=("--mem=8G",))
    )
    assert {row.field: row.state for row in found.rows if row.state != "ok"} == {
        "project": "warning",
        "memory": "warning",
        "option": "error",
    }
