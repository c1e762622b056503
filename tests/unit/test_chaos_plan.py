"""A chaos run can be repeated: its plan comes from its seed alone."""

from tests.chaos.faults import INJECTORS
from tests.chaos.gathering import undo_clock
from tests.chaos.kinds import CRASH_POINTS, FAULTS, SHIM_POINTS
from tests.chaos.plan import CLIENTS, Plan, Stage, make_plan
from tests.chaos.program import read_witnesses, write_request

ALL = frozenset(need for kind in FAULTS for need in kind.needs)
STAGES = (Stage("one", frozenset({"here"})), Stage("two", ALL, platforms=("here", "site"), services=2))
SECONDS = 600.0


def plan(seed: int = 7) -> Plan:
    return make_plan(seed, SECONDS, STAGES)


def test_a_seed_makes_the_same_plan_each_time_and_another_seed_another() -> None:
    assert plan() == plan()
    assert plan().parts != plan(8).parts


def test_a_part_is_planned_the_same_whatever_other_parts_can_be_run() -> None:
    alone = make_plan(7, SECONDS / 2, STAGES[1:])
    assert alone.parts[0] == plan().parts[1]


def test_work_lasts_as_long_as_the_faults_and_comes_from_every_client() -> None:
    for part in plan().parts:
        assert {work.client for work in part.work} == set(CLIENTS)
        assert max(work.lasts for work in part.work) == part.seconds
        gaps = [later.begins - work.begins for work, later in zip(part.work[2:], part.work[3:], strict=False)]
        assert max(gaps) < 5
        assert part.faults[-1].begins > part.seconds - 20


def test_work_names_are_unique_and_some_work_is_cancelled_signalled_and_repeated() -> None:
    work = [work for part in plan().parts for work in part.work]
    assert len({one.name for one in work}) == len(work)
    assert any(one.cancel_after is not None for one in work)
    assert any(one.signal for one in work)
    assert any(one.repeats > 1 for one in work if one.client == "direct")


def test_a_part_has_only_faults_that_can_be_injected_there_and_each_kind_at_least_once() -> None:
    first, second = plan().parts
    assert {fault.kind for fault in first.faults} == {kind.name for kind in FAULTS if kind.needs <= {"here"}}
    assert {fault.kind for fault in second.faults} == {kind.name for kind in FAULTS}
    assert {fault.target for fault in second.faults} == {0, 1}


def test_every_kind_of_fault_has_an_injector_and_every_crash_point_is_used() -> None:
    assert INJECTORS.keys() == {kind.name for kind in FAULTS}
    details = {fault.detail for seed in range(40) for part in plan(seed).parts for fault in part.faults}
    assert {*CRASH_POINTS, *SHIM_POINTS} <= details


def test_times_are_true_again_that_a_clock_off_by_an_hour_wrote() -> None:
    times = (1000.0, 4600.0, -2600.0)
    assert [undo_clock(time, 900.0, 1100.0) for time in times] == [1000.0] * 3


def test_a_plan_can_be_read() -> None:
    lines = list(plan().describe())
    assert lines[0] == "seed 7"
    assert any("kill -9 of the service" in line for line in lines)
    assert any("sent 3 times" in line for line in lines)


def test_a_program_bears_witness_to_its_beginning_and_its_end() -> None:
    work = next(work for work in plan().parts[0].work if work.code == 17)
    run = write_request(work, "/w")["run"]
    assert isinstance(run, list)
    assert run[2].count(">>/w") == 2
    assert run[2].endswith("exit 17")
    (begun,) = read_witnesses([f"{work.name} begin abc", ""])
    assert (begun.work, begun.event, begun.session) == (work.name, "begin", "abc")
