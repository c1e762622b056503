"""Every check of a chaos run passes what is right, and can fail."""

from dataclasses import replace

import pytest

from tests.chaos.checks import CHECKS, judge
from tests.chaos.evidence import Ended, Evidence, FailedTurn, Health, Injected, Record, Told, Witness
from tests.chaos.plan import Work

WORK = (
    Work("a", "http", "here", 0.0, 1.0, repeats=2),
    Work("b", "run", "here", 1.0, 1.0, code=3),
    Work("c", "sdk", "here", 2.0, 9.0, cancel_after=1.0),
    Work("d", "direct", "here", 3.0, 1.0, signal=6),
)
A = Record("id-a", "a", "here", "COMPLETED", 100.0, 102.0, "exited", 0)
B = Record("id-b", "b", "here", "FAILED", 101.0, 103.0, "exited", 3)
C = Record("id-c", "c", "here", "CANCELLED", 102.0, 104.0, "cancelled", by="ann")
D = Record("id-d", "d", "here", "FAILED", 103.0, 105.0, "signalled", None, 6)
OFFER = Record("id-o", "a", "here", "EXPIRED", 100.0)
RIGHT = Evidence(
    work=WORK,
    told=(
        Told("a", ids=frozenset({"id-a"}), end=("exited", 0)),
        Told("b", exit=3),
        Told("c", ids=frozenset({"id-c"}), cancelled=True, end=("cancelled", None)),
        Told("d", ids=frozenset({"id-d"})),
    ),
    witnesses=tuple(Witness(work.name, event) for work in WORK for event in ("begin", "end") if work.name != "c"),
    records=(A, B, C, D, OFFER),
    directories=frozenset({"id-a", "id-b", "id-d"}),
    ends={"id-a": Ended("exited", 0), "id-b": Ended("exited", 3)},
    listed={"id-a": "COMPLETED", "id-b": "FAILED", "id-c": "CANCELLED", "id-d": "FAILED"},
    health=(Health(200.1, 200.2, "failing", 0), Health(202.0, 202.1, "ok", 0)),
    failed_turns=(FailedTurn(200.0, 0),),
    log_bytes=100_000,
    seconds=60.0,
)


def having(record: Record, **changes: object) -> Evidence:
    """The evidence with another end of one session."""
    changed = replace(record, **changes)  # type: ignore[arg-type]
    ends = {id: end for id, end in RIGHT.ends.items() if id != record.id}
    others = tuple(one for one in RIGHT.records if one.id != record.id)
    listed = {**RIGHT.listed, record.id: changed.phase}
    told = tuple(replace(one, end=None, exit=None) for one in RIGHT.told)
    return replace(RIGHT, records=(*others, changed), ends=ends, listed=listed, told=told)


def without_witness(evidence: Evidence, work: str, *events: str) -> Evidence:
    kept = tuple(line for line in evidence.witnesses if line.work != work or line.event not in events)
    return replace(evidence, witnesses=kept)


# As it is told on a site without accounting, while a controller crashed: by itself, nothing is wrong with it.
FORGOTTEN = replace(
    having(
        replace(A, platform="site"),
        phase="CANCELLED",
        kind="cancelled",
        code=None,
        by="someone on the system itself, not through Sublet",
    ),
    faults=(Injected("controller-crash", "", 99.0, 103.0),),
    cancels=frozenset({"id-c"}),
    cancelled_there=frozenset({"id-c"}),
)
MET = replace(FORGOTTEN, cancelled_there=frozenset({"id-a", "id-c"}))
WRONG = {
    "a witness who saw it twice": (replace(RIGHT, witnesses=(*RIGHT.witnesses, Witness("a", "begin"))), "check_once"),
    "two sessions for one piece of work": (
        replace(RIGHT, records=(*RIGHT.records, replace(A, id="id-2")), listed={**RIGHT.listed, "id-2": "COMPLETED"}),
        "check_once",
    ),
    "an end that denies a run": (having(A, phase="FAILED", kind="not-started", code=None), "check_once"),
    "an end that makes up a run": (without_witness(RIGHT, "a", "begin", "end"), "check_once"),
    "a lost session": (
        replace(RIGHT, records=(B, C, D), listed={"id-b": "FAILED", "id-c": "CANCELLED", "id-d": "FAILED"}),
        "check_nothing_is_lost",
    ),
    "an accepted offer that expired": (having(A, phase="EXPIRED", kind=""), "check_nothing_is_lost"),
    "one key, two sessions": (
        replace(RIGHT, told=(Told("a", ids=frozenset({"id-a", "id-b"})), *RIGHT.told[1:])),
        "check_nothing_is_lost",
    ),
    "another exit code": (having(A, phase="FAILED", code=1), "check_ends"),
    "another signal": (having(D, signal=9), "check_ends"),
    "an unknown end that no fault explains": (having(A, phase="FAILED", kind="unknown", code=None), "check_ends"),
    "an exit of a program that did not come to its end": (without_witness(RIGHT, "a", "end"), "check_ends"),
    "a session that nobody planned": (
        replace(
            RIGHT, records=(*RIGHT.records, replace(A, id="id-x", name="x")), listed={**RIGHT.listed, "id-x": A.phase}
        ),
        "check_ends",
    ),
    "a client that was told otherwise": (
        replace(RIGHT, told=(replace(RIGHT.told[0], end=("exited", 1)), *RIGHT.told[1:])),
        "check_clients",
    ),
    "sublet run that exits otherwise": (
        replace(RIGHT, told=(RIGHT.told[0], Told("b", exit=0), *RIGHT.told[2:])),
        "check_clients",
    ),
    "a cancel that met another session": (
        having(B, phase="CANCELLED", kind="cancelled", code=None, by="ann"),
        "check_cancels",
    ),
    "a cancel that met a neighbour on the site": (MET, "check_cancels"),
    "a session that never ends": (replace(RIGHT, unfinished=("a is RUNNING",)), "check_quiet"),
    "an orphan": (replace(RIGHT, processes=("sleep 100",)), "check_leftovers"),
    "a booking of nobody": (replace(RIGHT, booked=frozenset({"id-a"})), "check_leftovers"),
    "a claim of nobody": (having(A, is_claimed=True), "check_leftovers"),
    "a directory of nobody": (replace(RIGHT, directories=frozenset({"id-z"})), "check_leftovers"),
    "a mark of nobody": (replace(RIGHT, leftovers=("running/id-a",)), "check_leftovers"),
    "a database that disagrees with ps": (
        replace(RIGHT, listed={**RIGHT.listed, "id-a": "RUNNING"}),
        "check_agreement",
    ),
    "a session that ps does not list": (
        replace(RIGHT, listed={id: phase for id, phase in RIGHT.listed.items() if id != "id-a"}),
        "check_agreement",
    ),
    "a session that only ps lists": (
        replace(RIGHT, listed={**RIGHT.listed, "id-z": "RUNNING"}),
        "check_agreement",
    ),
    "a directory that disagrees with the database": (
        replace(RIGHT, ends={**RIGHT.ends, "id-a": Ended("exited", 9)}),
        "check_agreement",
    ),
    "health that is ok while the loop fails": (
        replace(RIGHT, health=(Health(200.1, 200.2, "ok", 0),)),
        "check_health",
    ),
    "health that is ok without a database": (replace(RIGHT, outages=((201.5, 203.0),)), "check_health"),
    "a log that is too big": (replace(RIGHT, log_bytes=50 << 20), "check_log"),
    "a service that ended by itself": (replace(RIGHT, notes=("service 0 ended by itself",)), "check_notes"),
}


def test_what_is_right_passes() -> None:
    assert judge(RIGHT) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_by_the_check_for_it(name: str) -> None:
    evidence, check = WRONG[name]
    assert any(words.startswith(f"{check}: ") for words in judge(evidence)), judge(evidence)


def test_every_check_is_shown_to_fail() -> None:
    assert {check for _, check in WRONG.values()} == {check.__name__ for check in CHECKS}


def test_an_end_is_explained_by_a_fault_that_the_session_met_and_by_no_other() -> None:
    unknown = having(A, phase="FAILED", kind="unknown", code=None)
    met = Injected("shim-point", "shim.started", 99.0, 103.0)
    assert judge(replace(unknown, faults=(met,))) == []
    assert judge(replace(unknown, faults=(replace(met, began=300.0, ended=301.0),)))
    assert judge(replace(unknown, faults=(replace(met, kind="kill"),)))


def test_what_sublet_stopped_by_itself_needs_a_fault_that_explains_it() -> None:
    stopped = having(replace(A, platform="site"), phase="CANCELLED", kind="cancelled", by="sublet, because of its time")
    stopped = without_witness(stopped, "a", "begin", "end")
    crash = Injected("node-crash", "", 99.0, 103.0)
    assert judge(replace(stopped, faults=(crash,))) == []
    assert judge(stopped)


def test_a_job_that_a_controller_forgot_is_told_from_a_neighbour_that_a_cancel_met() -> None:
    assert judge(FORGOTTEN) == []
    assert judge(MET) == ["check_cancels: a (id-a) was cancelled on the site, and Sublet had named others"]


def test_health_of_another_process_than_the_failing_one_counts_for_nothing() -> None:
    ok = replace(RIGHT, health=(Health(200.4, 200.5, "ok", 0),))
    assert judge(replace(ok, starts=((0, 200.3),))) == []
    assert judge(replace(ok, starts=((1, 200.3),)))


def test_a_run_that_found_no_service_may_have_left_a_session_behind() -> None:
    unreachable = tuple(Told("b", exit=3) if told.work == "b" else told for told in RIGHT.told)
    assert judge(replace(having(B, phase="COMPLETED", code=3), told=unreachable)) == []
