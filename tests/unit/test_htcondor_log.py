"""HTCondor's own log of jobs, as it was written, and what it means for a session."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.job import State
from sublet.booking.model.marks import PAUSED
from sublet.booking.model.session import EndKind
from sublet.platforms.htcondor.log import LogEvent, read_log
from sublet.platforms.htcondor.states import TRIES, JobRecord, judge, read_record

RECORDED = Path(__file__).parent.parent / "recorded/htcondor/25.14.1"
MIB = 1 << 20


def told(name: str, job: int = 0, events: int | None = None) -> LogEvent:
    """What a recorded log says of a job, after so many events."""
    text = (RECORDED / f"{name}.txt").read_text()
    pieces = text.split("\n...\n")[:-1]
    return read_log("".join(f"{piece}\n...\n" for piece in pieces[:events])).get(job, LogEvent())


def record(kind: str = "exited", code: int = 0, detail: str = "") -> JobRecord | None:
    said = {"kind": kind, "code": code, "detail": detail, "started": 1.5, "ended": 3.0, "node": "c1"}
    return read_record(json.dumps({**said, "times": "0m1.500000s 0m0.250000s", "peak": 4096}))


def test_an_exit_code_is_read_with_what_it_used() -> None:
    seen = told("exited")
    assert (seen.id, seen.status, seen.code, seen.starts, seen.over) == ("27.0", "exited", 3, 1, True)
    assert seen.memory == 5 * MIB
    state = judge(seen, None, None)
    assert state.end
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 3)
    assert "HTCondor's record" in state.end.detail


def test_a_job_waits_gets_its_files_and_runs() -> None:
    words = [(judge(told("exited", events=count), None, None)) for count in range(6)]
    states = [state.state for state in words]
    assert states == [State.QUEUED, State.QUEUED, State.QUEUED, State.QUEUED, State.RUNNING, State.RUNNING]
    assert "is getting its files" in words[2].condition
    assert words[4].started


@pytest.mark.parametrize("hours", [-8, 0, 5.75])
def test_times_are_right_in_whatever_zone_they_were_written(hours: float) -> None:
    text = (RECORDED / "lost.txt").read_text()
    last = datetime(2026, 11, 16, 2, 7, 57, tzinfo=UTC)
    seen = read_log(text, last + timedelta(hours=hours, seconds=40))[0]
    assert seen.changed == last + timedelta(hours=hours)
    assert seen.started == seen.changed - timedelta(seconds=21)


def test_what_is_cut_off_is_not_read() -> None:
    whole = (RECORDED / "exited.txt").read_text()
    assert read_log(whole[:-2])[0].status == "runs"
    assert read_log(whole[:100]) == {}


def test_a_lost_node_is_first_looked_for_and_then_an_end() -> None:
    lost = told("lost", events=6)
    assert "HTCondor tries to find it again" in judge(lost, None, None).condition
    assert judge(lost, None, None).state is State.RUNNING
    back = told("lost", events=8)
    assert (back.status, back.back, back.starts) == ("waits", True, 1)
    assert judge(back, None, None).state is State.QUEUED, "the queue has not been asked"
    end = judge(back, None, None, tries=1).end
    assert end
    assert end.kind is EndKind.NODE_LOST
    assert "not started again" in end.detail
    assert judge(back, None, "someone", tries=1).end is None, "it is being removed, which is its end"


def test_a_job_that_was_never_started_is_tried_again_but_not_for_ever() -> None:
    never = LogEvent(id="1.0", status="waits", back=True, reason="no way")
    assert judge(never, None, None, tries=1).state is State.QUEUED
    assert "no way" in judge(never, None, None, tries=1).condition
    end = judge(never, None, None, tries=TRIES).end
    assert end
    assert end.kind is EndKind.NOT_STARTED


def test_a_removed_job_says_by_whom() -> None:
    seen = told("cancelled")
    assert (seen.status, seen.starts) == ("removed", 1)
    ours = judge(seen, record("terminated", 143), "somebody").end
    theirs = judge(seen, None, None).end
    assert ours
    assert theirs
    assert (ours.kind, ours.by) == (EndKind.CANCELLED, "somebody")
    assert ours.usage
    assert ours.usage.cpu == 1.75
    assert theirs.by == "researcher at the access point itself"


def test_a_paused_job_says_so() -> None:
    states = [judge(told("cancelled", events=count), None, None) for count in range(12)]
    assert any(state.marks == PAUSED and state.condition.startswith("paused: stopped") for state in states)
    held = judge(told("held", job=1, events=22), None, None)
    assert held.state is State.QUEUED
    assert held.condition.startswith("paused: held")
    assert held.marks == PAUSED


def test_a_job_that_htcondor_holds_has_ended_with_its_reason() -> None:
    held = told("held", events=14)
    assert (held.status, held.hold, held.detail) == ("held", 12, 21)
    end = judge(held, None, None).end
    assert end
    assert end.kind is EndKind.STAGING_FAILED
    assert "could not be brought back" in end.detail
    full = judge(LogEvent(id="1.0", status="held", hold=12, reason="No space left on device", starts=1), None, None).end
    assert full
    assert full.kind is EndKind.DISK_FULL


@pytest.mark.parametrize(
    ("said", "kind", "code", "signal"),
    [
        (record("exited", 7), EndKind.EXITED, 7, None),
        (record("exited", 137), EndKind.SIGNALLED, None, 9),
        (record("timeout", 143), EndKind.TIMEOUT, None, None),
        (record("out-of-memory", 137, "it used 9 KiB"), EndKind.OUT_OF_MEMORY, None, None),
        (record("not-started", 127, "no such program"), EndKind.NOT_STARTED, None, None),
        (record("staging-failed", 125, "no image"), EndKind.STAGING_FAILED, None, None),
    ],
)
def test_what_the_job_says_of_itself_comes_first(said: JobRecord, kind: EndKind, code: int, signal: int) -> None:
    end = judge(LogEvent(id="1.0", status="exited", code=said.code, starts=1), said, None).end
    assert end
    assert (end.kind, end.code, end.signal, end.detail) == (kind, code, signal, said.detail)
    assert end.usage
    assert (end.usage.wall, end.usage.peak_memory) == (1.5, 4096)


def test_a_record_that_is_no_record_is_none() -> None:
    assert read_record("") is None
    assert read_record('{"kind": "exited"}') is None
