"""A live system beside what was known of it: what is the same, what differs, and what only one side says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.platforms.slurm.probe import read_live, read_qos
from sublet.systems.edited import with_fields
from sublet.systems.model.probe import Difference, Live, compare, compare_probe
from sublet.systems.model.system import NodeKind, Queue, Quota, System, Tool

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
GIB = 1 << 30
RECORDED = Path(__file__).parents[1] / "recorded" / "slurm"
CPU = NodeKind("cpu", cores=128, memory=256 * GIB)
KNOWN = Queue("compute", sharing="whole", nodes=(CPU,), max_nodes=32, max_time=timedelta(days=2))
SEEN = replace(KNOWN, nodes=(NodeKind("128c-251g", 128, 251 * GIB, 251 * GIB, count=700),))


def states(system: System, live: Live) -> dict[tuple[str, str], tuple[str, str, str]]:
    return {(one.subject, one.what): (one.known, one.live, one.state) for one in compare(system, live)}


def of_queue(known: Queue, seen: Queue) -> dict[str, tuple[str, str, str]]:
    found = states(System("mine", queues=(known,)), Live(NOW, queues=(seen,)))
    return {what: said for (subject, what), said in found.items() if subject == f"queue {known.name}"}


def test_a_queue_that_is_as_it_was_known_has_only_the_same() -> None:
    found = of_queue(KNOWN, SEEN)
    assert {state for _, _, state in found.values()} == {"same"}
    assert found["memory of a node"] == ("256GiB", "251GiB", "same")


def test_a_limit_that_changed_differs() -> None:
    found = of_queue(KNOWN, replace(SEEN, max_time=timedelta(days=1), sharing="shared"))
    assert found["longest time"] == ("2 d", "1 d", "different")
    assert found["sharing"] == ("whole", "shared", "different")
    assert found["most nodes"] == ("32", "32", "same")


def test_a_limit_that_one_side_does_not_say_is_not_known() -> None:
    assert of_queue(KNOWN, replace(SEEN, max_nodes=None))["most nodes"] == ("32", "", "unknown")
    assert of_queue(replace(KNOWN, max_nodes=None), SEEN)["most nodes"] == ("", "32", "unknown")


@pytest.mark.parametrize(("memory", "state"), [(256, "same"), (235, "same"), (128, "different"), (512, "different")])
def test_memory_is_the_same_if_only_what_the_kernel_keeps_is_missing(memory: int, state: str) -> None:
    seen = replace(SEEN, nodes=(NodeKind("x", 128, memory * GIB, memory * GIB),))
    assert of_queue(KNOWN, seen)["memory of a node"][2] == state


def test_a_queue_that_is_gone_differs_and_one_that_is_new_was_not_known() -> None:
    found = states(System("mine", queues=(KNOWN,)), Live(NOW, queues=(replace(SEEN, name="other"),)))
    assert found["queue compute", "queue"] == ("there", "not there", "different")
    assert found["queue other", "queue"] == ("", "there", "unknown")
    assert found["queue other", "longest time"] == ("", "2 d", "unknown")


def test_a_queue_that_is_a_qos_of_a_partition_has_the_tighter_limits_of_both() -> None:
    known = replace(KNOWN, name="short", options=("--partition=standard", "--qos=short"), max_nodes=8)
    qos = Queue("short", max_nodes=8, max_time=timedelta(minutes=20), quotas=(Quota("user", "running", 4),))
    live = Live(NOW, queues=(replace(SEEN, name="standard"),), qos=(qos,))
    found = compare_probe(System("mine", queues=(known,)), live)
    assert [(queue.name, queue.max_nodes, queue.max_time) for queue in found.queues] == [
        ("short", 8, timedelta(minutes=20))
    ]
    assert Difference("queue short", "most running per user", "", "4", "unknown") in found.differences


def test_projects_tools_and_the_version_are_compared() -> None:
    tools = (Tool("apptainer", version="1.3.4"), Tool("podman"))
    system = System("mine", version="23.02", project="abc", tools=tools)
    live = Live(NOW, version="23.02.7", accounts=("abc", "xyz"), tools={"apptainer": "apptainer version 1.4.0"})
    found = states(system, live)
    assert found["system", "version"] == ("23.02", "23.02.7", "same")
    assert found["system", "your projects"] == ("abc", "abc, xyz", "same")
    assert found["tool apptainer", "tool"] == ("1.3.4", "apptainer version 1.4.0", "different")
    assert found["tool podman", "tool"] == ("there", "not there", "different")
    assert found["tool htcondor", "tool"] == ("", "not there", "unknown")
    assert states(replace(system, project="old"), live)["system", "your projects"][2] == "different"


def test_a_site_is_read_from_what_slurm_prints() -> None:
    said = {"queues": (RECORDED / "22.05.8" / "partitions.txt").read_text()}
    said["nodes"] = "c1|compute|64|2:16:2|257000|gpu:a100:4|idle\nc2|compute|64|2:16:2|256990|gpu:a100:4|down*\n"
    said["config"] = "SelectType              = select/cons_tres\nSLURM_VERSION           = 22.05.8\n"
    said["tools"] = "modules\tLmod 8.7\napptainer\tapptainer version 1.4.0\n"
    live = read_live(said | {"accounts": "abc\nabc\n"}, NOW)
    assert (live.version, live.accounts, live.tools["modules"]) == ("22.05.8", ("abc",), "Lmod 8.7")
    assert live.queues
    kinds = [kind for queue in live.queues if queue.name == "compute" for kind in queue.nodes]
    assert [(kind.name, kind.cores, kind.usable, kind.gpus, kind.count) for kind in kinds] == [
        ("32c-251g-4gpu", 32, 256990 << 20, 4, 2)
    ]


def test_the_limits_of_a_qos_are_read() -> None:
    [short, free] = read_qos("short|00:20:00|cpu=256,node=8|node=2|4|16|gres/gpu=2,node=32\nnormal||||||\n")
    assert (short.max_nodes, short.min_nodes, short.max_cores, short.max_time) == (8, 2, 256, timedelta(minutes=20))
    assert {quota.what: quota.most for quota in short.quotas} == {"running": 4, "submitted": 16, "nodes": 32, "gpus": 2}
    assert free == Queue("normal")


def test_saving_changes_the_fields_that_change_and_nothing_else() -> None:
    text = "# mine\nlike: expanse\nqueues:\n- name: old # gone\n\n# who I am\nuser: alice\n"
    changed = with_fields(text, {"queues": [{"name": "new"}], "nodes": {"cpu": {"cores": 4}}})
    assert (
        changed
        == "# mine\nlike: expanse\nqueues:\n- name: new\n\n# who I am\nuser: alice\nnodes:\n  cpu:\n    cores: 4\n"
    )
    assert with_fields("{user: alice}", {"queue": "a"}) == "user: alice\nqueue: a\n"


def test_a_probe_says_that_reservations_can_be_made_and_whether_the_settings_use_them() -> None:
    [offered] = [each for each in compare(System("mine"), Live(NOW, can_reserve=True)) if each.what == "reservations"]
    assert (offered.state, offered.known) == ("unknown", "")
    assert "reservations = yes" in offered.live
    used = System("mine", settings={"reservations": "yes"})
    [same] = [each for each in compare(used, Live(NOW, can_reserve=True)) if each.what == "reservations"]
    assert same.state == "same"
    assert not [each for each in compare(System("mine"), Live(NOW)) if each.what == "reservations"]
