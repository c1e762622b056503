"""How a job ended is told from all that is known, and nothing is made up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.booking.model.job import State
from sublet.booking.model.marks import PAUSED
from sublet.booking.model.session import Connector, EndKind, Usage
from sublet.platforms.batch.states import ELSEWHERE, EndRecord, QueueRow, SiteLook, judge, settle
from sublet.platforms.slurm.states import ENDS, RUNS, STATES, WAITS

START = datetime(2026, 12, 1, 9, tzinfo=UTC)
CLAIMED = SiteLook(claimed=True, id="7")
RAN = replace(CLAIMED, ran=True, began=START)


def record(kind: str = "exited", code: int = 0, by: str = "", detail: str = "", oom: bool = False) -> EndRecord:
    end = START + timedelta(minutes=1)
    return EndRecord(kind, code, by, detail, START, end, "7", "c1", oom, Usage(wall=60))


def row(state: str, code: int | None = None, signal: int = 0, by: str = "") -> QueueRow:
    return QueueRow("7", "key", state, "Resources", START, None, "debug", "c1", code, signal, by)


def end_of(look: SiteLook, seen: QueueRow | None = None) -> tuple[EndKind, int | None, int | None, str]:
    state = judge(STATES, look, seen) or settle(STATES, look)
    assert state.state is State.ENDED
    assert state.end
    return state.end.kind, state.end.code, state.end.signal, state.end.by


@pytest.mark.parametrize("state", WAITS)
def test_what_waits_is_queued_and_says_why(state: str) -> None:
    found = judge(STATES, CLAIMED, row(state))
    assert found
    assert found.state is State.QUEUED
    assert "Slurm job 7" in found.condition
    assert "Resources" in found.condition


@pytest.mark.parametrize("state", RUNS)
def test_what_runs_is_running(state: str) -> None:
    found = judge(STATES, RAN, row(state))
    assert found
    assert found.state is State.RUNNING
    assert found.started == START


def test_a_job_that_began_after_the_queue_was_seen_runs() -> None:
    found = judge(STATES, RAN, row("PENDING"))
    assert found
    assert found.state is State.RUNNING


@pytest.mark.parametrize("state", ENDS)
def test_what_slurm_ended_is_told_in_its_own_kind(state: str) -> None:
    assert end_of(RAN, row(state))[0] is ENDS[state][0]


def test_an_exit_code_is_the_jobs_own_word_also_while_slurm_still_shows_it() -> None:
    look = replace(RAN, record=record(code=3))
    assert end_of(look, row("RUNNING")) == (EndKind.EXITED, 3, None, "")
    assert end_of(look) == (EndKind.EXITED, 3, None, "")


def test_a_kill_is_not_judged_before_slurm_has_said_what_it_was() -> None:
    look = replace(RAN, record=record(code=137))
    found = judge(STATES, look, row("COMPLETING"))
    assert found
    assert found.state is State.RUNNING
    assert end_of(look, row("OUT_OF_MEMORY"))[0] is EndKind.OUT_OF_MEMORY
    assert end_of(look, row("FAILED", 137)) == (EndKind.SIGNALLED, None, 9, "")
    assert end_of(look) == (EndKind.SIGNALLED, None, 9, "")


def test_the_kernels_own_count_tells_out_of_memory() -> None:
    look = replace(RAN, record=record(code=137, oom=True))
    assert end_of(look, row("RUNNING"))[0] is EndKind.OUT_OF_MEMORY


def test_who_cancelled_through_sublet_is_told_by_name() -> None:
    look = replace(RAN, cancel="ann", record=record("cancelled", 143, "ann"))
    assert end_of(look, row("RUNNING")) == (EndKind.CANCELLED, None, None, "ann")
    assert end_of(replace(RAN, cancel="ann"), row("CANCELLED")) == (EndKind.CANCELLED, None, None, "ann")


def test_a_cancel_behind_our_back_is_a_cancel_by_someone_there() -> None:
    look = replace(RAN, termed=True, record=record("terminated", 143))
    assert end_of(look, row("CANCELLED")) == (EndKind.CANCELLED, None, None, ELSEWHERE)
    assert end_of(look, row("CANCELLED", 0, 15, by="1001")) == (
        EndKind.CANCELLED,
        None,
        None,
        "uid 1001 on the system itself",
    )
    assert end_of(look) == (EndKind.CANCELLED, None, None, ELSEWHERE)


@pytest.mark.parametrize(
    ("state", "kind"),
    [("PREEMPTED", EndKind.PREEMPTED), ("TIMEOUT", EndKind.TIMEOUT), ("NODE_FAIL", EndKind.NODE_LOST)],
)
def test_a_stop_from_outside_is_what_slurm_says_it_was(state: str, kind: EndKind) -> None:
    assert end_of(replace(RAN, termed=True, record=record("terminated", 143)), row(state))[0] is kind


def test_a_job_that_slurm_forgot_is_settled_from_its_own_record() -> None:
    assert end_of(replace(RAN, record=record("timeout", 143)))[0] is EndKind.TIMEOUT
    assert end_of(replace(RAN, timed=True))[0] is EndKind.TIMEOUT
    assert end_of(replace(CLAIMED, cancel="ann"))[:1] == (EndKind.CANCELLED,)


def test_without_any_record_it_is_unknown() -> None:
    for look in (CLAIMED, RAN):
        assert judge(STATES, look, None) is None
        assert settle(STATES, look).state is State.UNKNOWN
        assert "no record" in settle(STATES, look).condition


def test_what_was_never_submitted_is_unknown() -> None:
    found = judge(STATES, SiteLook(), None)
    assert found
    assert found.state is State.UNKNOWN


def test_slurms_exit_code_is_believed_where_there_is_no_record() -> None:
    assert end_of(RAN, row("FAILED", 4)) == (EndKind.EXITED, 4, None, "")
    assert judge(STATES, RAN, row("COMPLETED")) is None, "squeue has no exit code: Slurm's memory is asked"


def test_a_paused_job_says_so() -> None:
    found = judge(STATES, replace(RAN, paused=True), row("RUNNING"))
    assert found
    assert found.condition == "paused: stopped on its node; its time runs on"
    assert found.marks == PAUSED


def test_a_job_that_listens_says_on_which_node_and_port() -> None:
    found = judge(STATES, replace(RAN, connector="uri:shell c1:20000"), row("RUNNING"))
    assert found
    assert found.connector == Connector("uri:shell", "AVAILABLE", "HTTP", "c1:20000")
    assert judge(STATES, RAN, row("RUNNING")).connector is None  # type: ignore[union-attr]


def test_a_job_that_its_owner_holds_is_paused() -> None:
    found = judge(STATES, CLAIMED, replace(row("PENDING"), reason="JobHeldUser"))
    assert found
    assert (found.state, found.condition) == (State.QUEUED, "paused: held in the queue, as Slurm job 7 in debug")
    assert found.marks == PAUSED


def test_a_job_that_slurm_started_again_did_not_exit_with_the_code_of_its_script() -> None:
    """Its second start finds that it ran, and goes away: what became of the first is not known."""
    assert end_of(RAN, row("FAILED", code=71)) == (EndKind.UNKNOWN, None, None, "")


def test_a_job_whose_node_did_not_see_its_directory_was_not_started() -> None:
    assert end_of(CLAIMED, row("FAILED", code=70))[0] is EndKind.NOT_STARTED


@pytest.mark.parametrize("code", [70, 71])
def test_a_program_may_exit_with_the_codes_of_its_script(code: int) -> None:
    assert end_of(replace(RAN, record=record(code=code)), row("FAILED", code=code))[:2] == (EndKind.EXITED, code)
