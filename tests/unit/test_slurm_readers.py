"""What Slurm's commands print, in the dialects of several versions, is understood alike."""

from datetime import UTC, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.batch.fitting import of_type
from sublet.platforms.batch.looks import read_results
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, flags

RECORDED = Path(__file__).parent.parent / "recorded" / "slurm"
VERSIONS = sorted(path.name for path in RECORDED.iterdir())
GIB = 1 << 30


def recorded(version: str, name: str) -> str:
    return (RECORDED / version / f"{name}.txt").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_and_their_limits_are_read_alike_from_every_version(version: str) -> None:
    compute, shared = read.read_queues(recorded(version, "partitions"))
    assert (compute.name, compute.default, compute.whole, compute.max_nodes) == ("compute", True, True, 2)
    assert compute.max_time == timedelta(hours=1)
    assert (shared.name, shared.whole, shared.max_time) == ("shared", False, timedelta(hours=4))
    assert shared.max_cores in (6, 10)
    assert compute.up
    assert compute.accounts == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_reservations_are_read_alike_from_every_version(version: str) -> None:
    (maintenance,) = read.read_reservations(recorded(version, "res"))
    assert maintenance.name == "maint"
    assert maintenance.nodes == ("c1", "c2")
    assert maintenance.end - maintenance.start == timedelta(hours=1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_planned_start_is_read_whatever_stands_behind_it(version: str) -> None:
    said = recorded(version, "testonly").splitlines()
    planned = read.read_plan(said[1])
    assert planned
    assert planned.start.tzinfo is UTC
    assert (planned.start.year, planned.start.month) == (2026, 11)
    assert planned.nodes == ("c1", "c2")
    assert read.read_plan(said[5]) is None


def test_limits_on_what_is_submitted_are_read_by_account_and_by_qos() -> None:
    said = "alpha|40||\nbeta|||\ngamma|9|5|\n"
    assert read.read_accounts(said) == ("alpha", "beta", "gamma")
    assert read.read_submits(said) == {"alpha": 40, "gamma": 5}
    assert read.read_accounts("alpha\nbeta\n") == ("alpha", "beta"), "as an older survey kept them"
    assert read.read_largest_array({"MaxArraySize": "1001"}) == 1001
    assert read.read_largest_array({"MaxArraySize": "0"}) == 0
    assert read.read_largest_array({}) > 1


def test_no_reservation_is_none() -> None:
    assert read.read_reservations("No reservations in the system\n") == ()


@pytest.mark.parametrize("version", ["20.11.4", "22.05.8", "26.05"])
def test_nodes_are_read_once_with_all_their_queues(version: str) -> None:
    nodes = {one.node.name: one for one in read.read_nodes(recorded(version, "sinfo"))}
    assert sorted(nodes["c1"].queues) == ["compute", "debug"]
    assert nodes["c4"].node.gpus == 2
    assert nodes["c4"].node.memory == 4000 << 20
    assert all(one.here for one in nodes.values())


def test_cores_are_cores_where_slurm_counts_threads() -> None:
    (node,) = read.read_nodes("nid001|regular|256|2:64:2|515072|(null)|allocated\n")
    assert (node.node.cores, node.threads) == (128, 2)


@pytest.mark.parametrize("state", ["down*", "drained", "draining@", "maint", "fail", "mixed+drain", "inval"])
def test_a_node_that_can_not_be_used_is_told_apart(state: str) -> None:
    (node,) = read.read_nodes(f"n1|q|4|1:4:1|1000+|gpu:a100:4(S:0-1),shard:8|{state}\n")
    assert not node.here
    assert node.node.gpus == 4


@pytest.mark.parametrize("state", ["idle", "mixed-", "allocated*", "idle~", "powering_up", "completing", "planned"])
def test_a_node_that_is_busy_or_asleep_can_be_used(state: str) -> None:
    (node,) = read.read_nodes(f"n1|q|4|1:4:1|1000|(null)|{state}\n")
    assert node.here


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("c[1-3]", ("c1", "c2", "c3")),
        ("n[08-10,12],login", ("n08", "n09", "n10", "n12", "login")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("(null)", ()),
        ("one", ("one",)),
    ],
)
def test_a_list_of_hosts_is_spread_out(text: str, names: tuple[str, ...]) -> None:
    assert read.hosts(text) == names


@pytest.mark.parametrize(
    ("text", "hours"),
    [("1-02:00:00", 26), ("02:00:00", 2), ("30:00", 0.5), ("2-00", 48), ("1-12:30", 36.5), ("UNLIMITED", None)],
)
def test_a_time_limit_is_read_in_each_of_its_forms(text: str, hours: float | None) -> None:
    assert read.length(text) == (None if hours is None else timedelta(hours=hours))


@pytest.mark.parametrize(
    ("text", "number"),
    [("gpu:2", 2), ("gpu:a100:4", 4), ("gpu:h100:2(S:0),gpu:a100:1", 3), ("(null)", 0), ("craynetwork:4", 0)],
)
def test_gpus_are_counted(text: str, number: int) -> None:
    assert read.gpus(text) == number


def test_results_keep_whatever_is_in_their_names() -> None:
    left = read_results(b"5 1700000000 ./a b\nc\x007 1700000001 ./\xff\x00")
    assert [(file.path, file.size) for file in left.files] == [("\\xff", 7), ("a b\nc", 5)]


def test_types_of_gpus_are_read_and_asked_for_by_gres() -> None:
    assert read.gpu_types("gpu:a100:4(S:0-1),gpu:v100-32g:2,gpu:2,shard:8") == ("a100", "v100-32g")
    assert read.gpu_types("gpu:3090:8(S:0-1),gpu:h100:no_consume:4") == ("3090", "h100")
    assert read.gpu_types("gpu:no_consume:4") == read.gpu_types("gpu:4") == read.gpu_types("(null)") == ()
    [typed, plain] = read.read_nodes("c1|q|8|1:8:1|1000|gpu:a100:2|idle|0\nc2|q|8|1:8:1|1000|gpu:2|idle|0\n")
    assert of_type([typed, plain], "a100") == [typed]
    assert of_type([typed, plain], "") == [typed, plain]
    wish = SlurmWish("q", Amounts(Shape(1, 0, gpus=2), time=timedelta(hours=1)))
    assert "--gres=gpu:a100:2" in flags(wish, SlurmAccount(SchedulerOptions(gpu_type="a100")))
    assert "--gres=gpu:2" in flags(wish, SlurmAccount())
