"""A resource request is shown whole: each line with its source, its flag, and what the system says to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sublet.annexes.model.annex import Details
from sublet.annexes.model.leasing import LINES, plan, system_of
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.systems.model.allocation import Cost, cost_of
from sublet.systems.model.system import Charge, NodeKind, Queue, System

HOUR = timedelta(hours=1)
NODE = NodeKind("standard", cores=128, memory=256 << 30, count=100)
SU = Charge(1, "SU per core-hour")
COMPUTE = Queue("compute", sharing="whole", nodes=(NODE,), max_nodes=32, max_time=48 * HOUR, charges=(SU,))
SHARED = Queue("shared", sharing="shared", nodes=(NODE,), max_nodes=4, max_time=48 * HOUR)
EXPANSE = System("expanse", scheduler="slurm", queues=(COMPUTE, SHARED), project_needed="always", project="abc123")


def by_field(sources: list[tuple[str, Details]], system: System = EXPANSE) -> dict[str, tuple[str, str, str]]:
    return {row.field: (row.value, row.source, row.state) for row in plan(sources, system).rows}


def test_every_line_is_there_with_its_source_and_its_flag() -> None:
    last = Details("expanse", "compute", "xyz789", nodes=4, lifetime=2 * HOUR)
    found = plan([("you", Details(nodes=2)), ("last time: example#1", last)], EXPANSE)
    assert [row.field for row in found.rows] == list(LINES)
    assert [row.flag for row in found.rows] == [f"--{field}" for field in LINES]
    rows = {row.field: (row.value, row.source) for row in found.rows}
    assert rows["nodes"] == ("2", "you")
    assert rows["project"] == ("xyz789", "last time: example#1")
    assert rows["idle"] == ("5 min", "default")
    assert rows["cores"] == ("128", "all: compute gives whole nodes")
    assert not found.refused


def test_what_is_asked_of_the_scheduler_is_a_line_each_with_its_source() -> None:
    mine = Details("expanse", "compute", scheduler=SchedulerOptions(nice=5, options=("switches=1",)))
    last = Details("expanse", "compute", scheduler=SchedulerOptions(nice=9, exclusive=True))
    found = plan([("you", mine), ("last time: example#1", last)], EXPANSE)
    assert found.details.scheduler == SchedulerOptions(nice=5, exclusive=True, options=("switches=1",))
    rows = {row.field: (row.value, row.source, row.flag) for row in found.rows[len(LINES) :]}
    assert rows == {
        "nice": ("5", "you", "--nice"),
        "exclusive": ("yes", "last time: example#1", "--exclusive"),
        "options": ("switches=1", "you", "--option"),
    }
    elsewhere = plan([("you", Details("anvil")), ("last time: example#1", last)], replace(EXPANSE, name="anvil"))
    assert elsewhere.details.scheduler == SchedulerOptions(), "another system has other nodes and options"


def test_what_a_system_wants_or_refuses_of_the_scheduler_is_said_with_the_flag_that_changes_it() -> None:
    picky = replace(EXPANSE, needs=("constraint",), refuses=("--nice",))
    asked = Details("expanse", "compute", scheduler=SchedulerOptions(nice=5))
    rows = {row.field: (row.state, row.flag) for row in plan([("you", asked)], picky).rows}
    assert rows["constraint"] == ("error", "--constraint")
    assert rows["option"] == ("error", "--option")
    chosen = Details("expanse", "compute", scheduler=SchedulerOptions(constraint="cpu"))
    assert not plan([("you", chosen)], picky).refused


def test_what_is_not_said_of_the_project_comes_from_the_system() -> None:
    rows = by_field([("you", Details("expanse", "compute"))])
    assert rows["project"] == ("abc123", "how expanse was added", "ok")


def test_what_belongs_to_another_system_is_not_taken_from_the_last_time() -> None:
    last = Details("anvil", "wholenode", "old", nodes=3, cores=64, memory=1 << 30, gpus=1, idle=timedelta(minutes=9))
    rows = by_field([("you", Details("expanse", "compute")), ("last time: a#1", last)])
    assert rows["nodes"][:2] == ("3", "last time: a#1")
    assert rows["idle"][:2] == ("9 min", "last time: a#1")
    assert [rows[name][1] for name in ("project", "cores", "memory", "gpus")] == [
        "how expanse was added",
        "all: compute gives whole nodes",
        "default",
        "default",
    ]


def test_what_belongs_to_another_queue_is_not_taken_from_the_last_time() -> None:
    last = Details("expanse", "shared", "abc", nodes=1, cores=4, memory=1 << 30)
    rows = by_field([("you", Details(queue="compute")), ("last time: a#1", last)])
    assert rows["project"][:2] == ("abc", "last time: a#1")
    assert rows["cores"][:2] == ("128", "all: compute gives whole nodes")
    assert rows["memory"][:2] == ("what the queue gives", "default")


def test_nodes_alone_are_never_turned_into_cores_in_a_shared_queue() -> None:
    found = plan([("you", Details("expanse", "shared", nodes=2))], EXPANSE)
    [cores] = [row for row in found.rows if row.field == "cores"]
    assert found.refused
    assert (cores.value, cores.state, cores.nearest) == ("not said", "error", "--cores 128, or --cores 1")
    assert "neither is taken for granted" in cores.message


def test_nodes_alone_must_say_cores_where_nothing_is_known() -> None:
    found = plan([("you", Details("mine", nodes=2))], System("mine", scheduler="slurm"))
    [cores] = [row for row in found.rows if row.field == "cores"]
    assert (cores.state, cores.nearest) == ("error", "--cores N")
    assert not plan([("you", Details("mine", nodes=2, cores=4))], System("mine", scheduler="slurm")).refused


def test_a_limit_is_told_with_the_flag_of_this_command() -> None:
    found = plan([("you", Details("expanse", "compute", nodes=99, lifetime=72 * HOUR))], EXPANSE)
    rows = {row.field: row for row in found.rows}
    assert (rows["nodes"].state, rows["nodes"].nearest) == ("error", "--nodes 32")
    assert (rows["lifetime"].state, rows["lifetime"].nearest) == ("error", "--lifetime 2d")


def test_a_lease_that_can_never_be_idle_for_so_long_is_pointed_out() -> None:
    details = Details("expanse", "compute", lifetime=timedelta(minutes=10), idle=HOUR)
    assert by_field([("you", details)])["idle"] == ("1 h", "you", "warning")
    short = replace(details, lifetime=timedelta(seconds=20), idle=None)
    assert by_field([("you", short)])["lifetime"][2] == "error"


def test_the_system_is_the_first_that_is_named() -> None:
    assert system_of([("you", Details()), ("template t", Details("a")), ("last time", Details("b"))]) == "a"
    assert system_of([("you", Details())]) == ""


@pytest.mark.parametrize(
    ("details", "queue", "cost"),
    [
        (Details(nodes=2, cores=128), COMPUTE, Cost(4, 512, 0, 512, "SU")),
        (Details(nodes=2, cores=8), COMPUTE, Cost(4, 512, 0, 512, "SU")),
        (Details(nodes=1, cores=8), SHARED, Cost(2, 16, 0)),
        (Details(nodes=1, cores=8), None, Cost(2, 16, 0)),
        (Details(nodes=3), None, Cost(6, None, 0)),
        (
            Details(nodes=2),
            replace(COMPUTE, charges=(Charge(1.5, "node-hour"),)),
            Cost(4, 512, 0, 6, "node-hours"),
        ),
        (
            Details(nodes=1, gpus=2),
            Queue("gpu", sharing="shared", charges=(Charge(3, "SU per GPU-hour"),)),
            Cost(2, None, 4, 12, "SU"),
        ),
        (
            Details(nodes=1),
            replace(COMPUTE, charges=(Charge(10, "AU per node-hour, times the factor of the QOS"),)),
            Cost(2, 256, 0, 20, "AU", "times the factor of the QOS"),
        ),
        (
            Details(nodes=1, cores=4),
            replace(SHARED, charges=(Charge(1, "share of a node-hour"),)),
            Cost(2, 8, 0, remark="1 share of a node-hour"),
        ),
        (
            Details(nodes=1),
            replace(COMPUTE, charges=(Charge(1, "SU", "other"), Charge(2, "SU per node-hour", "standard"))),
            Cost(2, 256, 0, 4, "SU"),
        ),
    ],
)
def test_what_it_costs_is_counted_in_the_centres_own_coin_where_that_is_known(
    details: Details, queue: Queue | None, cost: Cost
) -> None:
    assert cost_of(details, queue, 2 * HOUR) == cost


@pytest.mark.parametrize(
    ("details", "state", "says"),
    [
        (Details(slots=4, cores=8), "ok", ""),
        (Details(slots=9, cores=8), "error", "9 slots need a core each, and a node has 8."),
        (Details(slots=3, cores=8), "warning", "Of each node 2 of its 8 cores would be in no slot"),
        (Details(slots=4, cores=8, gpus=2), "warning", "Of each node 2 of its 2 gpus would be in no slot"),
    ],
)
def test_slots_of_equal_size_are_checked_against_what_a_node_has(details: Details, state: str, says: str) -> None:
    found = plan([("you", replace(details, system="expanse", queue="shared", nodes=1))], EXPANSE)
    row = next(row for row in found.rows if row.field == "slots")
    assert (row.value, row.flag, row.state) == (str(details.slots), "--slots", state)
    assert row.message.startswith(says)


def test_without_a_word_a_node_is_one_slot_that_is_cut_up_as_jobs_need() -> None:
    assert by_field([("you", Details("expanse", "compute"))])["slots"] == ("one, cut up as jobs need", "default", "ok")
