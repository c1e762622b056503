"""What a system would refuse: each limit, in words that help, before anyone signs in."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.booking.model.request import GIB
from sublet.systems import catalogue
from sublet.systems.model.refusals import check, takers
from sublet.systems.model.system import Charge, NodeKind, Queue, Quota, System, TimeStep
from sublet.systems.model.wish import SystemFinding, Wish, is_refused
from tests.examples import examples

HOUR = timedelta(hours=1)
CPU = NodeKind("cpu", cores=128, memory=256 * GIB, usable=250 * GIB)
GPU = NodeKind("gpu", cores=40, memory=384 * GIB, gpus=4, gpu="V100")
WHOLE = Queue("whole", sharing="whole", nodes=(CPU,), max_nodes=32, max_time=48 * HOUR)
SHARED = Queue("shared", sharing="shared", nodes=(CPU,), max_nodes=1, max_cores=127, max_time=48 * HOUR)
GPUS = Queue(
    "gpus", sharing="shared", nodes=(GPU,), max_nodes=4, max_time=24 * HOUR, quotas=(Quota("group", "gpus", 8),)
)
SITE = System("site", scheduler="slurm", project_needed="always", needs=("queue", "time"), queues=(WHOLE, SHARED, GPUS))
CATALOGUE = {name: catalogue.find_in_catalogue(name) for name in catalogue.names()}
FIELDS = ["queue", "project", "nodes", "cores", "memory", "gpus", "time", "jobs", "option"]


def wish(queue: str = "whole", **said: object) -> Wish:
    return replace(Wish(queue, "abc", time=HOUR), **said)  # type: ignore[arg-type]


def found(asked: Wish, field: str, system: System = SITE) -> SystemFinding:
    return next(finding for finding in check(system, asked) if finding.field == field)


def only(queue: Queue, **changes: object) -> System:
    return replace(SITE, queues=(replace(queue, **changes),))  # type: ignore[arg-type]


def test_a_wish_within_all_limits_is_fine_and_every_part_of_it_is_shown_with_its_flag() -> None:
    findings = check(SITE, wish(nodes=2, cores=128, memory=GIB))
    assert [finding.field for finding in findings] == FIELDS
    assert {finding.state for finding in findings} == {"ok"}
    assert [finding.flag for finding in findings] == [f"--{field}" for field in FIELDS]
    assert not is_refused(findings)


def test_too_many_nodes_are_refused_with_the_most_that_is_possible() -> None:
    said = found(wish(nodes=33), "nodes")
    assert (said.state, said.wanted, said.limit, said.nearest) == ("error", "33", "up to 32", "--nodes 32")
    assert said.message == "whole takes jobs of 32 nodes at most."


def test_too_few_nodes_are_refused_with_the_least_that_is_possible() -> None:
    said = found(wish(nodes=2), "nodes", only(WHOLE, min_nodes=3))
    assert (said.state, said.limit, said.nearest) == ("error", "3 to 32", "--nodes 3")


def test_a_queue_has_no_more_nodes_than_there_are() -> None:
    said = found(wish(nodes=9), "nodes", only(WHOLE, nodes=(replace(CPU, count=8),)))
    assert (said.state, said.message, said.nearest) == ("error", "There are 8 such nodes.", "--nodes 8")


def test_cores_beyond_a_node_are_told_in_both_readings_and_never_turned_into_nodes() -> None:
    said = found(wish(cores=256), "cores")
    assert said.state == "error"
    assert said.message == (
        "No node of whole has 256 cores; they have 128. --cores is for each node."
        " If 256 in all were meant, they take 2 nodes."
    )
    assert said.nearest == "--cores 128, or --nodes 2 --cores 128"


def test_advice_keeps_within_the_other_limits_of_the_queue() -> None:
    said = found(wish("shared", cores=256), "cores")
    assert said.nearest == "--cores 127"
    assert said.message.endswith("If 256 in all were meant, they take 2 nodes, and a job has 1 at most.")


def test_with_nodes_said_too_both_readings_are_told_for_these_nodes() -> None:
    said = found(wish(nodes=4, cores=256), "cores")
    assert said.message.endswith("If 256 in all were meant, that is 64 on each of 4 nodes.")
    assert said.nearest == "--cores 128, or --cores 64"


def test_some_cores_of_a_whole_node_take_all_of_it() -> None:
    said = found(wish(cores=4), "cores")
    assert said.state == "warning"
    assert said.message == "whole gives whole nodes: the job takes all 128 cores of each, not 4."
    assert said.nearest == "--cores 128, or --queue shared"


def test_nodes_alone_in_a_shared_queue_do_not_say_how_many_cores() -> None:
    said = found(wish("gpus", nodes=2, gpus=1), "cores")
    assert (said.state, said.wanted, said.nearest) == ("warning", "not said", "--cores 40, or --cores 1")
    assert "2 x 40 cores, all of each node, or 2 x 1 core" in said.message


def test_nodes_alone_in_a_whole_node_queue_mean_all_of_their_cores() -> None:
    said = found(wish(nodes=2), "cores")
    assert (said.state, said.wanted) == ("ok", "all 128")


def test_a_queue_can_limit_the_cores_of_a_job() -> None:
    said = found(wish("shared", cores=128), "cores")
    assert (said.state, said.nearest) == ("error", "--cores 127, or --queue whole")
    assert found(wish("shared", cores=3), "cores", only(SHARED, min_cores=24)).nearest == "--cores 24"


def test_memory_beyond_a_node_is_refused() -> None:
    said = found(wish(memory=251 * GIB), "memory")
    assert (said.state, said.limit, said.nearest) == (
        "error",
        "250GiB on each node",
        "--memory 250GiB, or --queue gpus",
    )


def test_memory_near_the_nominal_is_doubted() -> None:
    said = found(wish("gpus", gpus=1, memory=380 * GIB), "memory")
    assert (said.state, said.limit) == ("warning", "384GiB on each node, nominally")
    assert found(wish("gpus", gpus=1, memory=300 * GIB), "memory").state == "ok"


def test_a_queue_can_want_much_memory() -> None:
    system = only(SHARED, min_memory=128 * GIB)
    assert found(wish("shared"), "memory", system).nearest == "--memory 128GiB"
    assert found(wish("shared", memory=128 * GIB), "memory", system).state == "ok"


def test_memory_and_gpus_must_be_on_the_same_node() -> None:
    mixed = only(WHOLE, nodes=(replace(CPU, usable=500 * GIB, memory=512 * GIB), GPU))
    assert found(wish(memory=450 * GIB), "memory", mixed).state == "warning"
    said = found(wish(memory=450 * GIB, gpus=2), "memory", mixed)
    assert said.message == "No node of whole with such cores and GPUs has more than 384GiB."


def test_more_than_the_common_nodes_have_is_on_some_only() -> None:
    mixed = only(WHOLE, nodes=(CPU, replace(CPU, usable=500 * GIB)))
    assert found(wish(memory=400 * GIB), "memory", mixed).state == "warning"


def test_gpus_are_refused_where_there_are_none_and_the_queue_that_has_them_is_named() -> None:
    said = found(wish("shared", cores=4, gpus=1), "gpus")
    assert (said.state, said.limit, said.nearest) == ("error", "none", "--gpus 0, or --queue gpus")


def test_gpus_beyond_a_node_are_told_in_both_readings() -> None:
    assert found(wish("gpus", gpus=8), "gpus").nearest == "--gpus 4, or --nodes 2 --gpus 4"


def test_gpu_nodes_without_gpus_are_a_waste() -> None:
    assert found(wish("gpus"), "gpus").state == "warning"
    assert found(wish("gpus", gpus=1), "gpus", only(GPUS, sharing="whole")).state == "warning"


def test_limits_per_group_bind_a_single_job_too() -> None:
    said = found(wish("gpus", nodes=4, gpus=4), "gpus")
    assert (said.state, said.nearest) == ("error", "--gpus 2")
    assert said.message == "All jobs of one group in gpus have 8 GPUs together."


def test_time_can_depend_on_the_number_of_nodes() -> None:
    steps = (TimeStep(1, 91, 2 * HOUR), TimeStep(92, 183, 6 * HOUR), TimeStep(184, 999, 12 * HOUR))
    system = only(WHOLE, max_nodes=999, max_time=12 * HOUR, time_by_nodes=steps)
    assert found(wish(nodes=92, time=6 * HOUR), "time", system).state == "ok"
    said = found(wish(nodes=91, time=6 * HOUR), "time", system)
    assert (said.state, said.limit, said.nearest) == ("error", "up to 2 h", "--time 2h, or --nodes 92")
    assert said.message == "whole lets jobs of 91 nodes run for 2 h at most, and for 6 h those of 92-183 nodes."


def test_time_can_fall_with_the_number_of_nodes() -> None:
    steps = (TimeStep(1, 16, 48 * HOUR), TimeStep(17, 64, 3 * HOUR))
    said = found(wish(nodes=20, time=6 * HOUR), "time", only(WHOLE, max_nodes=64, time_by_nodes=steps))
    assert said.nearest == "--time 3h, or --nodes 16"


def test_time_has_a_least_and_can_be_a_must() -> None:
    assert found(wish(time=HOUR), "time", only(WHOLE, min_time=24 * HOUR)).nearest == "--time 1d"
    assert found(wish(time=None), "time").state == "error"
    assert found(wish(time=None), "time", replace(SITE, needs=())).state == "warning"


def test_jobs_beyond_those_that_run_wait_and_beyond_those_submitted_are_refused() -> None:
    system = only(WHOLE, quotas=(Quota("user", "running", 2), Quota("user", "submitted", 5)))
    states = [found(wish(jobs=jobs), "jobs", system).state for jobs in (2, 3, 5, 6)]
    assert states == ["ok", "warning", "warning", "error"]
    assert found(wish(jobs=6), "jobs", system).nearest == "--jobs 5"


def test_a_missing_project_is_told_and_the_persons_own_is_taken() -> None:
    asked = wish(project="")
    assert found(asked, "project").nearest == "--project NAME"
    assert found(asked, "project", replace(SITE, project="mine")).state == "ok"
    sometimes = replace(SITE, project_needed="sometimes", project_when="with several projects")
    assert found(asked, "project", sometimes).state == "warning"
    assert found(asked, "project", replace(SITE, project_needed="never")).state == "ok"
    assert found(asked, "project", replace(SITE, project_needed="")).state == "unknown"


def test_a_missing_queue_is_told_with_one_that_would_take_it() -> None:
    assert found(wish("", cores=4), "queue").nearest == "--queue shared"
    assert found(wish("", gpus=2), "queue").nearest == "--queue gpus"
    assert found(wish("", nodes=9), "queue").nearest == "--queue whole"
    assert found(wish("", nodes=99), "queue").nearest == ""
    assert found(wish("", cores=4), "queue", replace(SITE, queue="whole")).state == "ok"


def test_an_unknown_queue_is_told_and_the_rest_is_checked_all_the_same() -> None:
    findings = check(SITE, wish("nowhere", nodes=99))
    assert findings[0].state == "error"
    assert findings[0].message == "site has no queue nowhere; the rest is checked against whole."
    assert found(wish("nowhere", nodes=99), "nodes").state == "error"


def test_a_default_queue_is_taken_but_told() -> None:
    said = found(wish(""), "queue", replace(SITE, default_queue="shared"))
    assert (said.state, said.message) == ("warning", "site takes shared if none is said.")


def test_a_queue_that_is_not_for_all_or_can_be_stopped_is_told_and_never_suggested() -> None:
    closed = replace(SITE, queues=(replace(WHOLE, access="industry"), replace(SHARED, preemptible=True)))
    assert found(wish(), "queue", closed).message == "It is not for all: industry."
    assert found(wish("shared"), "queue", closed).message == "Its jobs can be stopped for others."
    assert [queue.name for queue in takers(closed, wish(cores=128))] == []


def test_options_that_a_site_refuses_are_refused_and_memory_is_left_out_there() -> None:
    site = replace(SITE, refuses=("--mem", "--gres"))
    assert found(wish(options=("--mem=8G",)), "option", site).message == "site refuses --mem."
    assert found(wish(options=("--exclusive",)), "option", site).state == "ok"
    said = found(wish(memory=GIB), "memory", site)
    assert (said.state, said.nearest) == ("warning", "leave --memory out")


def test_options_that_a_site_wants_are_wanted() -> None:
    site = replace(SITE, needs=("queue", "-l filesystems"))
    assert found(wish(), "option", site).nearest == "--option '-l filesystems=…'"
    assert found(wish(options=("-l filesystems=home",)), "option", site).state == "ok"


def test_the_sort_of_node_is_wanted_where_there_are_several() -> None:
    sorts = (replace(CPU, select="-C cpu"), replace(GPU, select="-C gpu"))
    site = replace(SITE, needs=("constraint",), queues=(replace(WHOLE, nodes=sorts),))
    assert found(wish(), "constraint", site).nearest == "--constraint cpu, or --constraint gpu"
    assert found(wish(gpus=4), "constraint", site).nearest == "--constraint gpu"
    assert found(wish(gpus=4, constraint="gpu"), "constraint", site).state == "ok"
    assert found(wish(constraint="gpu"), "cores", site).wanted == "all 40"
    assert found(wish(gpus=4), "constraint", replace(site, constraint="gpu")).state == "ok"
    assert found(wish(constraint="lustre"), "constraint", site).state == "unknown"


def test_a_system_that_has_closed_refuses_everything() -> None:
    closing = replace(SITE, closes="2026-11-21")
    states = [check(closing, wish(), date(2026, 11, day))[0].state for day in (15, 20, 21)]
    assert states == ["warning", "warning", "error"]
    assert check(closing, wish(), date(2026, 5, 1))[0].field == "queue"


def test_what_nobody_wrote_down_is_unknown_and_not_allowed_or_refused() -> None:
    findings = check(System("bare"), wish(nodes=10**6, memory=GIB, jobs=9))
    assert not is_refused(findings)
    assert {f.field for f in findings if f.state == "ok"} == {"project", "option"}
    assert found(wish("q", nodes=2), "nodes", System("bare", queues=(Queue("q"),))).state == "unknown"


def test_nodes_of_which_something_is_not_known_could_have_it() -> None:
    mystery = only(GPUS, nodes=(NodeKind("h100", gpu="H100"), replace(GPU, cores=40)))
    asked = wish("gpus", nodes=1, gpus=6, cores=64, memory=999 * GIB)
    assert [found(asked, field, mystery).state for field in ("gpus", "cores", "memory")] == ["unknown"] * 3
    assert (
        found(replace(asked, gpus=9), "gpus", mystery).message == "All jobs of one group in gpus have 8 GPUs together."
    )


def test_a_queue_knows_what_the_scheduler_calls_it() -> None:
    assert SHARED.words == {"partition": "shared"}
    short = CATALOGUE["archer2"].find_queue("short")
    assert short is not None
    assert short.words == {"partition": "standard", "qos": "short"}
    assert all(queue.words.keys() <= {"partition", "qos"} for one in CATALOGUE.values() for queue in one.queues)


def test_charges_say_nothing_against_a_wish() -> None:
    assert check(only(WHOLE, charges=(Charge(9, "SU"),)), wish()) == check(only(WHOLE), wish())


counts = st.none() | st.integers(1, 20_000) | st.sampled_from([1, 2, 3, 4, 64, 128])
wishes = st.builds(
    Wish,
    queue=st.just(""),
    project=st.sampled_from(["", "abc"]),
    constraint=st.sampled_from(["", "gpu", "cpu", "x"]),
    nodes=counts,
    cores=counts,
    memory=st.none() | st.integers(1, 10_000).map(lambda count: count * GIB),
    gpus=st.none() | st.integers(0, 40),
    time=st.none() | st.integers(60, 20 * 86_400).map(lambda seconds: timedelta(seconds=seconds)),
    jobs=counts,
    options=st.sampled_from([(), ("--mem=1G",), ("--exclusive", "-l filesystems=home")]),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[System, Wish]:
    system = CATALOGUE[draw(st.sampled_from(sorted(CATALOGUE)))]
    names = ["", "nowhere", *(queue.name for queue in system.queues)]
    return system, replace(draw(wishes), queue=draw(st.sampled_from(names)))


@examples(150)
@given(cases())
def test_each_part_is_told_once_and_each_refusal_says_why(case: tuple[System, Wish]) -> None:
    findings = check(*case, date(2026, 11, 15))
    assert [f.field for f in findings if f.field not in ("system", "constraint", "option")] == FIELDS[:-1]
    assert all(finding.message.endswith(".") for finding in findings if finding.state == "error")


APPLIED = {"nodes": int, "cores": int, "gpus": int, "jobs": int, "memory": parse_memory, "time": parse_duration}


def followed(asked: Wish, nearest: str) -> Wish:
    """The wish with the first piece of advice taken."""
    words = shlex.split(nearest.split(", or ")[0])
    values = {flag.removeprefix("--"): value for flag, value in zip(words[::2], words[1::2], strict=True)}
    return replace(asked, **{name: APPLIED.get(name, str)(value) for name, value in values.items()})  # type: ignore[arg-type]


@examples(150)
@given(cases())
def test_advice_that_is_taken_helps(case: tuple[System, Wish]) -> None:
    system, asked = case
    for finding in check(system, asked):
        if finding.state == "error" and finding.nearest and finding.field not in ("project", "option"):
            better = followed(asked, finding.nearest)
            assert found(better, finding.field, system).state != "error", (finding, better)
