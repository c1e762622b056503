"""Laws of work in parts: every task is one part's, and the end of the whole is the truth about all of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model import bag
from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.parts import INCOMPLETE, Part, chunk_size, fair, is_mine, ranges, read_part
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Usage
from sublet.booking.model.together import Joined, end_of, together

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
GOOD = End(EndKind.EXITED, 0)


@given(st.integers(0, 500), st.integers(1, 40))
def test_without_a_common_directory_every_task_is_exactly_one_parts(tasks: int, parts: int) -> None:
    owners = [[number for number in range(parts) if is_mine(task, Part(number, parts))] for task in range(tasks)]
    assert all(len(owner) == 1 for owner in owners)
    shares = [sum(owner == [number] for owner in owners) for number in range(parts)]
    assert max(shares) - min(shares) <= 1
    assert sum(fair(tasks, Part(number, parts)) for number in range(parts)) == tasks


@given(st.integers(0, 10**6), st.integers(1, 1000))
def test_a_chunk_is_small_enough_to_lose_and_there_are_enough_of_them(tasks: int, parts: int) -> None:
    assert 1 <= chunk_size(tasks, parts) <= 500


def test_a_part_is_told_by_its_environment() -> None:
    assert read_part({}) == Part(0, 1)
    assert read_part({"SUBLET_PART": "3", "SUBLET_PARTS": "8", "SUBLET_CLAIMS": "/c"}) == Part(3, 8, "/c")
    assert read_part({"SUBLET_PARTS": "1", "SUBLET_CLAIMS": "/of another"}) == Part()


@given(st.sets(st.integers(0, 60)))
def test_ranges_name_each_number_once(numbers: set[int]) -> None:
    named: list[int] = []
    for word in filter(None, ranges(numbers, at_most=60).split(", ")):
        first, _, last = word.partition("-")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(numbers)


def test_a_bag_is_cut_into_as_many_parts_as_its_tasks_are_worth() -> None:
    thousand = {"template": ["sim", "{x}"], "grid": {"x": list(range(1000))}}
    assert bag.parts(thousand, cores=1) == 20
    assert bag.parts(thousand, cores=8) == 3
    assert bag.parts(thousand | {"parts": 100}, cores=8) == 100
    assert bag.parts(thousand | {"parallel": 1}, cores=1) == 1, "one at a time is one at a time"
    assert bag.parts(thousand | {"parts": 8, "parallel": 4}, cores=1) == 4
    assert bag.parts({"tasks": [["true"]] * 3, "parts": 10}, cores=1) == 3
    assert bag.parts({"tasks": [["true"]] * 40}, cores=1) == 1
    assert bag.parts({"file": "/lines"}, cores=1) == 1
    assert bag.parts({"file": "/lines", "parts": 4}, cores=1) == 4


def state(what: State, minute: int = 0, condition: str = "", end: End | None = None) -> JobState:
    at = NOW + timedelta(minutes=minute)
    return JobState(what, end, at if what is not State.QUEUED else None, at if end else None, condition=condition)


def test_parts_run_while_one_runs_or_waits_after_another_has_ended() -> None:
    waits, runs, over = state(State.QUEUED, condition="waits"), state(State.RUNNING), state(State.ENDED, end=GOOD)
    assert together([waits, waits]).state is State.QUEUED
    assert together([waits, waits]).condition == "of 2 parts 2 wait: waits"
    assert together([waits, runs]).condition == "of 2 parts 1 run, 1 wait: waits"
    assert [together(some).state for some in ([waits, runs], [waits, over], [over, over])] == [State.RUNNING] * 3
    lost = state(State.UNKNOWN, condition="not in the queue")
    assert together([over, lost]).state is State.UNKNOWN
    assert together([runs, lost]).state is State.RUNNING
    assert "1 are unknown: not in the queue" in together([runs, lost]).condition


def test_a_whole_is_paused_when_all_that_is_left_of_it_is_whatever_the_words_are() -> None:
    runs, over = state(State.RUNNING, condition="paused: by its words alone"), state(State.ENDED, end=GOOD)
    held = replace(state(State.QUEUED, condition="held"), marks=PAUSED)
    whole = together([over, held, held])
    assert (whole.condition, whole.marks) == ("held", PAUSED)
    assert together([runs, held]).marks == together([runs, runs]).marks == NONE


def test_the_whole_lasts_from_the_first_start_to_the_last_end() -> None:
    used = End(EndKind.EXITED, 0, usage=Usage(60, 30, 1 << 20))
    parts = [state(State.ENDED, 5, end=used), state(State.ENDED, 1, end=used)]
    whole = together(parts, Joined(0))
    assert (whole.started, whole.ended) == (NOW + timedelta(minutes=1), NOW + timedelta(minutes=5))
    assert whole.end
    assert whole.end.usage == Usage(240, 60, 1 << 20)


def test_if_nothing_is_missing_the_exit_code_is_what_one_part_would_have_had() -> None:
    assert end_of([GOOD, End(EndKind.EXITED, 1)], Joined(1)) == End(EndKind.EXITED, 1)
    cancelled = End(EndKind.CANCELLED, by="root")
    end = end_of([GOOD, cancelled], Joined(0))
    assert (end.phase, end.detail) == (Phase.COMPLETED, "part 1 of 2: cancelled by root")


def test_what_is_missing_is_told_with_the_worst_of_the_parts() -> None:
    lost, late = End(EndKind.NODE_LOST, detail="c3 went away"), End(EndKind.TIMEOUT)
    end = end_of([late, GOOD, lost, late], Joined(INCOMPLETE, "3 have no result: 7-9"))
    assert end.kind is EndKind.NODE_LOST
    wanted = "part 0, 3 of 4: timeout; part 2 of 4: node-lost (c3 went away); 3 have no result: 7-9"
    assert end.detail == wanted
    crashed = end_of([GOOD, GOOD], Joined(INCOMPLETE, "1 have no result: 4"))
    assert (crashed.kind, crashed.code) == (EndKind.EXITED, 1)


def test_without_a_program_that_joins_them_the_worst_part_is_the_end() -> None:
    assert end_of([GOOD, End(EndKind.EXITED, 4), End(EndKind.EXITED, 2)], Joined()).code == 4
    assert end_of([GOOD, GOOD], Joined()) == GOOD
