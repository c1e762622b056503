"""What LSF's commands print, as its manuals show it, is understood, and what is asked of it is said in its words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.states import SiteLook, judge
from sublet.platforms.lsf import commands as to
from sublet.platforms.lsf import readers as read
from sublet.platforms.lsf.options import LsfWish, words_for
from sublet.platforms.lsf.states import STATES
from sublet.reach.port import Outcome

RECORDED = Path(__file__).parent.parent / "recorded" / "lsf"
KEY = "4f0c1bd4-52a5-4b6c-9b0d-0d6f5a1f7a0"
GIB, HOUR = 1 << 30, timedelta(hours=1)
NOW = datetime(2016, 11, 16, 6, 30, tzinfo=UTC)


def recorded(name: str) -> str:
    return next(RECORDED.glob(f"{name}.*")).read_text()


def test_hosts_are_nodes_with_slots_memory_and_gpus() -> None:
    nodes = read.read_nodes(recorded("load"), recorded("hosts"), recorded("gpus"))
    memory = int(376.2 * GIB)
    assert [(each.node, each.here) for each in nodes] == [
        (Node("c001", 40, memory, 2), True),
        (Node("c002", 40, memory), True),  # full now, and to be waited for
        (Node("c003", 40, memory), False),
    ]
    assert read.read_nodes("", "", "") == ()


def test_a_gpu_whose_last_column_is_empty_counts() -> None:
    rows = ("HOST_NAME gpu_id gpu_model gpu_driver numa_id mig", "c001 0 MI250X 5.1 - -", " 1 MI250X 5.1 - -")
    assert read.read_nodes(recorded("load"), recorded("hosts"), "\n".join(rows))[0].node.gpus == 2


def test_the_longest_time_of_a_queue_is_its_maximum_whichever_limits_stand_beside_it() -> None:
    block = """
QUEUE: normal
  -- Jobs that run for some minutes, usually.

PARAMETERS/STATISTICS
PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV PJOBS
 40   20  Open:Active     100   50   11    -     1     1     0     0     0    0     0

DEFAULT LIMITS:
 RUNLIMIT
 10.0 min of hostA

MAXIMUM LIMITS:
 CPULIMIT                RUNLIMIT
 20 min of IBM350        342800 min of IBM350

 FILELIMIT DATALIMIT STACKLIMIT  CORELIMIT  MEMLIMIT  SWAPLIMIT  TASKLIMIT
  20000 K   20000 K    2048 K     20000 K    5000 K        - K   1 4 8
"""
    (queue,) = read.read_queues(block)
    assert queue.max_time == timedelta(minutes=342800)
    (unlimited,) = read.read_queues(block.partition("MAXIMUM")[0])
    assert unlimited.max_time is None


def test_an_answer_that_can_not_be_read_is_no_answer() -> None:
    cut = Outcome(0, recorded("jobs")[:300].encode(), b"")
    with pytest.raises(PlatformUnreachable, match="LSF's answer can't be read"):
        to.to_queue(Failures("site", "LSF", to.AWAY)).reader(cut)
    none = Outcome(255, b"", b"No unfinished job found")
    assert to.to_queue(Failures("site", "LSF", to.AWAY)).reader(none) == {}


def test_queues_are_read_with_their_limits() -> None:
    normal, night = read.read_queues(recorded("queues"))
    assert (normal.name, normal.up, normal.default, normal.max_time) == ("normal", True, True, 24 * HOUR)
    assert (night.name, night.up, night.default, night.max_time) == ("night", False, False, None)


def test_jobs_are_read_by_their_names_and_ends_by_lsfs_reasons() -> None:
    rows = read.read_jobs(recorded("jobs"))
    ends = {}
    for key, row in rows.items():
        state = judge(STATES, SiteLook(claimed=True, ran=True), row)
        if state and state.end:
            ends[key.replace(KEY, "")] = (state.end.kind, state.end.code)
    assert ends == {
        "3/0": (EndKind.EXITED, 3),
        "3/1": (EndKind.EXITED, 0),
        "4": (EndKind.TIMEOUT, None),
        "5": (EndKind.CANCELLED, None),
    }
    waits = judge(STATES, SiteLook(claimed=True), rows[f"{KEY}2"])
    assert waits
    assert waits.condition == "LSF job 102 waits in normal (Not enough job slot(s): 2 hosts)"
    held = judge(STATES, SiteLook(claimed=True), rows[f"{KEY}6"])
    assert held
    assert held.marks == PAUSED
    assert "held" in held.condition
    assert rows[f"{KEY}3/0"].number == "103"


def test_a_job_that_an_administrator_stopped_is_not_told_as_its_owners_pause() -> None:
    text = recorded("jobs").replace("suspended by the user while", "suspended by LSF admin or root while")
    state = judge(STATES, SiteLook(claimed=True), read.read_jobs(text)[f"{KEY}6"])
    assert state
    assert state.marks == NONE
    assert state.condition.endswith("is held in normal (by an administrator there, who alone can release it)")


def test_what_runs_is_known_until_its_limit() -> None:
    eight = datetime(2016, 11, 16, 8, tzinfo=UTC)
    assert read.read_takes(recorded("jobs"), NOW) == (Take("c001", eight - 2 * HOUR, eight, cores=32),)
    assert read.read_takes("No job found", NOW) == ()


@pytest.mark.parametrize(
    ("text", "hours"), [("120.0 min", 2), ("120.0 min of hostA", 2), ("02:00:00", 2), ("120:00:00", 120), ("-", 24)]
)
def test_the_limit_of_a_job_is_read_as_its_site_shows_times(text: str, hours: int) -> None:
    shown = recorded("jobs").replace('"RUNTIMELIMIT":"120.0 min"', f'"RUNTIMELIMIT":"{text}"')
    (take,) = read.read_takes(shown, NOW)
    assert take.end - take.start == hours * HOUR


def test_what_is_asked_is_said_in_its_words() -> None:
    amounts = Amounts(Shape(4, 3 * GIB, gpus=1), nodes=2, time=HOUR)
    assert words_for(LsfWish("normal", amounts, NOW), SchedulerOptions(project="p1")) == (
        *("-n", "8", "-R", "span[ptile=4]", "-R", "rusage[mem=3072MB]", "-gpu", "num=1", "-W", "62"),
        *("-q", "normal", "-P", "p1", "-b", "2016:11:16:06:30"),
    )


@pytest.mark.parametrize(
    ("later", "begin"),
    [
        (timedelta(0), "2016:11:16:06:30"),
        (timedelta(microseconds=1), "2016:11:16:06:31"),
        (timedelta(minutes=29, seconds=59), "2016:11:16:07:00"),
    ],
)
def test_a_job_does_not_start_before_its_window(later: timedelta, begin: str) -> None:
    words = words_for(LsfWish("normal", Amounts(Shape(1, GIB), time=HOUR), NOW + later), SchedulerOptions())
    assert words[words.index("-b") + 1] == begin
