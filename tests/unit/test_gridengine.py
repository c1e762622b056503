"""What Grid Engine's commands print (8.1.9, recorded) is understood, and what is asked of it is said in its words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.batch.states import SiteLook, judge
from sublet.platforms.gridengine import readers as read
from sublet.platforms.gridengine import rows
from sublet.platforms.gridengine.options import (
    GridWish,
    find_indivisible,
    list_environments,
    words_for,
    words_to_reserve,
)
from sublet.platforms.gridengine.platform import GridEngine
from sublet.platforms.gridengine.site import GridSite, plan_site, read_site
from sublet.platforms.gridengine.states import STATES, read_letters
from sublet.platforms.lsf.platform import Lsf
from sublet.platforms.oar.platform import Oar
from sublet.platforms.pbs.platform import Pbs

RECORDED = Path(__file__).parent.parent / "recorded" / "gridengine"
KEY = "4f0c1bd4-52a5-4b6c-9b0d-0d6f5a1f7a0"
GIB, MIB, HOUR = 1 << 30, 1 << 20, timedelta(hours=1)
NOW = datetime(2026, 11, 17, 11, 24, tzinfo=UTC)


def recorded(name: str) -> str:
    return next(RECORDED.glob(f"{name}.*")).read_text()


def site() -> GridSite:
    return read_site({name: recorded(name) for name in ("nodes", "hosts", "queues", "environments", "complexes")})


def test_a_host_has_its_slots_and_all_that_it_gives_out_whatever_is_used_now() -> None:
    [node] = site().nodes
    assert node.node == Node("gridengine", 4, 3 * GIB, 2, 20 * GIB)
    assert (node.queues, node.here) == (("all.q",), True)
    [queue] = site().queues
    assert (queue.queue.name, queue.queue.default, queue.queue.max_time, queue.environments) == (
        *("all.q", True, None, ("smp",)),
    )


@pytest.mark.parametrize(
    ("value", "count"),
    [("4(cuda0 cuda1 cuda2 cuda3)", 4), ("4(0 1 2 3),scratch=1G", 4), ("2.000000", 2), ("NONE", 0), ("TRUE", 0)],
)
def test_gpus_with_names_are_counted(value: str, count: int) -> None:
    texts = {name: recorded(name) for name in ("nodes", "hosts", "queues", "environments", "complexes")}
    texts["hosts"] = texts["hosts"].replace("gpu=2,", f"gpu={value},")
    texts["complexes"] = re.sub(r"^gpu .*$", "gpu gpu RSMAP <= YES HOST 0 0 NONE", texts["complexes"], flags=re.M)
    assert "RSMAP" in texts["complexes"]
    [node] = read_site(texts).nodes
    assert node.node.gpus == count
    wish = GridWish("all.q", Amounts(Shape(2, 0, gpus=1), time=HOUR), "smp")
    assert "gpu=1" in words_for(wish, read.read_complexes(texts["complexes"]), SchedulerOptions())


def test_a_queue_that_is_away_on_a_host_can_not_be_used_and_limits_of_queues_are_read() -> None:
    empty = "name='state_string'>"
    away = recorded("nodes").replace(f"{empty}</", f"{empty}au</")
    [node] = read.read_nodes(away, {}, {})
    assert not node.here
    text = "qname long.q\nqtype BATCH\npe_list smp mpi,[c1=smp]\nh_rt 48:00:00\n"
    [queue] = read.read_queues(f"{text}qname bad.q\nqtype INTERACTIVE\npe_list NONE\n")
    assert (queue.queue.max_time, queue.environments) == (timedelta(hours=48), ("smp", "mpi"))


def test_a_queue_that_operators_disabled_everywhere_takes_no_jobs_now() -> None:
    answers = {name: recorded(name) for name in ("nodes", "hosts", "queues", "environments", "complexes")}
    empty = "name='state_string'>"
    closed = {**answers, "nodes": answers["nodes"].replace(f"{empty}</", f"{empty}d</")}
    assert [each.queue.up for each in read_site(answers).queues] == [True]
    assert [each.queue.up for each in read_site(closed).queues] == [False]
    half = f"<q>{answers['nodes'].split('?>')[1]}{closed['nodes'].split('?>')[1]}</q>"
    assert read.find_closed_queues(half) == frozenset(), "one of its hosts still runs jobs of it"


def test_jobs_are_read_by_their_names_and_held_ones_are_told_apart() -> None:
    seen = rows.read_queue(recorded("jobs"))
    assert {key.replace(KEY, ""): (row.state, row.id) for key, row in seen.items()} == {
        "1": ("runs", "1"),
        "5": ("waits", "5"),
        "3": ("hold", "3"),
    }
    assert seen[f"{KEY}1"].start == datetime(2026, 11, 17, 11, 23, 39, tzinfo=UTC)
    array = recorded("jobs").replace("<slots>4</slots>", "<slots>1</slots><tasks>1-5:2</tasks>")
    assert [key for key in rows.read_queue(array) if "/" in key] == [f"{KEY}5/{part}" for part in (0, 2, 4)]


def test_a_job_that_an_operator_holds_is_not_told_as_its_owners_pause() -> None:
    [held] = (row for row in rows.read_queue(recorded("jobs")).values() if row.state == "hold")
    own = judge(STATES, SiteLook(claimed=True), held)
    [row] = (
        row
        for row in rows.read_queue(f"{recorded('jobs')}<!-- held by others: {held.id} -->\n").values()
        if row.state == "hold"
    )
    others = judge(STATES, SiteLook(claimed=True), row)
    assert own
    assert others
    assert (own.marks, others.marks) == (PAUSED, NONE)
    assert others.condition.endswith(" (by an administrator there, who alone can release it)")


@pytest.mark.parametrize("text", ["", "no XML", "<job_info><queue_info>", "<html/>"])
def test_what_is_no_answer_of_qstat_is_no_empty_queue(text: str) -> None:
    with pytest.raises(ValueError, match="no answer of qstat"):
        rows.read_queue(text)


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("r", "runs"),
        ("t", "runs"),
        ("qw", "waits"),
        ("hqw", "hold"),
        ("Eqw", "error"),
        ("dr", "ending"),
        ("S", "stopped"),
        ("tT", "stopped"),
        ("s", "suspended"),
    ],
)
def test_letters_are_states(letters: str, state: str) -> None:
    assert read_letters(letters) == state


def test_an_end_is_told_by_the_accounting_and_a_limit_of_memory_is_none_of_time() -> None:
    ends = {}
    for key, row in rows.read_past(recorded("past")).items():
        state = judge(STATES, SiteLook(claimed=True, ran=True), row)
        assert state
        assert state.end
        ends[key.replace(KEY, "")] = (state.end.kind, state.end.code)
    assert ends == {
        "1": (EndKind.CANCELLED, None),
        "2/0": (EndKind.EXITED, 3),
        "2/1": (EndKind.EXITED, 3),
        "4": (EndKind.TIMEOUT, None),
        "6": (EndKind.OUT_OF_MEMORY, None),
    }


def test_everybodys_jobs_and_reservations_make_a_plan() -> None:
    jobs = rows.read_jobs_of_all(recorded("all"))
    assert [(job.slots, job.host, job.time) for job in jobs] == [
        (2, "gridengine", timedelta(seconds=120)),
        (4, "", timedelta(seconds=90)),
    ]
    reserved = rows.read_reservations(recorded("reservations"))
    morning = datetime(2026, 11, 18, 9, tzinfo=UTC)
    assert reserved == (Take("gridengine", morning, morning + HOUR, cores=2),)
    plan = plan_site(site().nodes, jobs, reserved, NOW)
    started = datetime(2026, 11, 17, 11, 23, 39, tzinfo=UTC)
    assert plan.find_start(Amounts(Shape(2, 0)), HOUR, [Window(NOW, NOW + HOUR)]) == started + timedelta(seconds=210)
    assert plan.find_start(Amounts(Shape(4, 0)), HOUR, [Window(morning, morning + 2 * HOUR)]) == morning + HOUR


def test_a_job_in_a_reservation_takes_no_more_than_that() -> None:
    (first, *_), text = rows.read_jobs_of_all(recorded("all")), recorded("reservations")
    name = recorded("all").partition("<JB_name>")[2].partition("</JB_name>")[0]
    assert name.startswith(rows.MARK)
    assert rows.read_reservation_names(text) == frozenset(), "it has no name"
    names = rows.read_reservation_names(text.replace("<name/>", f"<name>{name}</name>") * 2)
    assert names == {name}
    assert first not in rows.read_jobs_of_all(recorded("all"), names)
    assert rows.read_reservation_names(text.replace("<name/>", "<name>other</name>")) == frozenset()


def test_what_is_asked_is_said_in_its_words_memory_for_each_slot() -> None:
    grid = site()
    amounts = Amounts(Shape(2, GIB, gpus=2, disk=GIB), time=HOUR, parts=3)
    [queue] = grid.queues
    [environment] = list_environments(amounts, queue, grid.environments)
    wish = GridWish("all.q", amounts, environment.name, begin=NOW)
    assert words_for(wish, grid.complexes, SchedulerOptions(project="mine")) == (
        *("-q", "all.q", "-pe", "smp", "2", "-l", "h_vmem=512M", "-l", "gpu=1", "-l", "scratch=512M"),
        *("-l", "h_rt=3720", "-P", "mine", "-a", "202611171124.00", "-t", "1-3"),
    )
    assert words_to_reserve(GridWish("", Amounts(Shape(1, 0), time=HOUR)), {}, NOW) == (
        *("-a", "202611171124.00", "-e", "202611171227.00"),
    )
    assert find_indivisible(Amounts(Shape(2, 0, gpus=1)), grid.complexes)
    assert not list_environments(Amounts(Shape(2, 0), nodes=2), queue, grid.environments)


def test_for_several_nodes_an_environment_that_starts_programs_on_each_comes_first() -> None:
    text = "pe_name a\nallocation_rule 2\ncontrol_slaves FALSE\npe_name b\nallocation_rule 2\ncontrol_slaves TRUE\n"
    known = read.read_environments(text)
    queue = read.GridQueue(SiteQueue("all.q"), ("a", "b"))
    two = Amounts(Shape(2, 0), nodes=2)
    assert [(each.name, each.starts_tasks) for each in list_environments(two, queue, known)] == [
        ("b", True),
        ("a", False),
    ]
    assert [each.name for each in list_environments(two, queue, known, "a")] == ["a"], "the one that settings name"


def test_sizes_and_times_are_read() -> None:
    assert (read.read_size("3.5G"), read.read_size("512M"), read.read_size("NONE")) == (int(3.5 * GIB), 512 * MIB, 0)
    assert (read.read_length("1:00:00"), read.read_length("90"), read.read_length("INFINITY")) == (
        *(HOUR, timedelta(seconds=90), None),
    )


def test_what_settings_add_to_pilots_is_added_on_every_batch_system() -> None:
    line = "STARTER_DEBUG = D_FULLDEBUG"
    for platform in (GridEngine, Oar, Pbs, Lsf):
        assert platform(name="far", pilot=(line,)).additions.lines == (line,)
