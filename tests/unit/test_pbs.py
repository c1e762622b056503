"""What PBS's commands print, as its manuals and sites show it, is understood; what is asked is said in its words."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import Compute, Range, Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.planning import LEEWAY, SitePlan
from sublet.platforms.batch.queue_offers import QueueOffers, choose_queues
from sublet.platforms.batch.site import SiteNode
from sublet.platforms.batch.states import SiteLook, judge
from sublet.platforms.pbs import commands as to
from sublet.platforms.pbs import readers as read
from sublet.platforms.pbs.options import PbsWish, words_for
from sublet.platforms.pbs.platform import Pbs
from sublet.platforms.pbs.queues import read_queues
from sublet.platforms.pbs.states import STATES
from sublet.reach.port import Outcome

RECORDED = Path(__file__).parent.parent / "recorded" / "pbs"
KEY = "4f0c1bd4-52a5-4b6c-9b0d-0d6f5a1f7a0"
KIB, HOUR = 1 << 10, timedelta(hours=1)
NOW = datetime(2016, 11, 16, 6, 30, tzinfo=UTC)


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.json").read_text()


def test_nodes_and_queues_are_read_with_their_limits() -> None:
    first, second = read.read_nodes(recorded("nodes"))
    assert first.node == Node("x3006c0s13b1n0", 64, 527672488 * KIB, 4)
    assert (first.here, first.queues, second.here, second.queues) == (True, (), False, ("debug",))
    workq, debug = read_queues(recorded("queues")).open
    assert (workq.name, workq.up, workq.max_time, workq.max_nodes) == ("workq", True, 24 * HOUR, 16)
    assert (debug.name, debug.up, debug.max_time) == ("debug", False, HOUR)
    assert [queue.name for queue in choose_queues([workq, debug], "")] == ["workq"]
    assert [queue.name for queue in choose_queues([workq, debug], "debug")] == ["debug"]


def test_jobs_are_read_by_their_names_with_the_reason_why_they_wait() -> None:
    rows = read.read_jobs(recorded("jobs"))
    waits = judge(STATES, SiteLook(claimed=True), rows[f"{KEY}1"])
    assert waits
    assert waits.condition == (
        "PBS job 1.vbox waits in workq (Insufficient amount of resource: ncpus); "
        "planned to start at 2016-11-16 07:06 UTC"
    )
    assert {key.replace(KEY, ""): row.state for key, row in rows.items()} == {
        "1": "Q",
        "2": "R",
        "3": "B",
        "3/0": "ended",
        "3/1": "Q",
        "4": "H",
        "5": "walltime",
        "6": "deleted",
        "7": "ended",
    }
    assert rows[f"{KEY}3/1"].number == "3[].vbox"


def test_ends_are_told_by_the_exit_status() -> None:
    rows = read.read_jobs(recorded("jobs"))
    ends = {}
    for part in ("3/0", "5", "6", "7"):
        state = judge(STATES, SiteLook(claimed=True, ran=True), rows[f"{KEY}{part}"])
        assert state
        assert state.end
        ends[part] = (state.end.kind, state.end.code)
    assert ends == {
        "3/0": (EndKind.EXITED, 3),
        "5": (EndKind.TIMEOUT, None),
        "6": (EndKind.CANCELLED, None),
        "7": (EndKind.EXITED, 0),
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (-3, EndKind.NOT_STARTED),
        (-4, EndKind.NODE_LOST),
        (-14, EndKind.NODE_LOST),  # another of its nodes
        (-20, EndKind.NODE_LOST),  # its first node
        (-24, EndKind.CULLED),
        (-25, EndKind.CULLED),
        (-26, EndKind.OUT_OF_MEMORY),
        (-27, EndKind.OUT_OF_MEMORY),
        (-28, EndKind.TIMEOUT),  # of processor time
        (-29, EndKind.TIMEOUT),
        (-30, EndKind.NOT_STARTED),
    ],
)
def test_what_pbs_itself_ended_is_told_by_its_codes(status: int, kind: EndKind) -> None:
    job = {"Job_Name": f"s-{KEY}8", "job_state": "F", "Exit_status": status}
    row = read.read_jobs(json.dumps({"Jobs": {"8.vbox": job}}))[f"{KEY}8"]
    state = judge(STATES, SiteLook(claimed=True), row)
    assert state
    assert state.end
    assert state.end.kind is kind


ROUTED = {
    "prod": {
        "queue_type": "Route",
        "resources_max": {"nodect": 496},
        "resources_min": {"nodect": 10, "walltime": "00:05:00"},
        "route_destinations": "small,large,elsewhere@other-server",
    },
    "small": {
        "queue_type": "Execution",
        "from_route_only": "True",
        "resources_max": {"nodect": 24, "walltime": "03:00:00"},
        "resources_min": {"nodect": 10},
    },
    "large": {"queue_type": "Execution", "from_route_only": "True", "resources_max": {"walltime": "24:00:00"}},
    "all": {"queue_type": "Route", "route_destinations": "prod,debug,all"},
    "debug": {"queue_type": "Execution", "resources_max": {"nodect": 2, "walltime": "01:00:00"}},
    "far": {"queue_type": "Route", "route_destinations": "workq@other-server"},
    "stopped": {"queue_type": "Execution", "from_route_only": "True"},
}


def test_a_queue_that_takes_jobs_from_routes_only_is_reached_by_its_routes() -> None:
    queues = read_queues(json.dumps({"Queue": ROUTED}))
    limits = {each.name: (each.min_nodes, each.max_nodes, each.max_time) for each in queues.open}
    assert limits == {
        "prod": (10, 496, 24 * HOUR),
        "all": (0, None, 24 * HOUR),
        "debug": (0, 2, HOUR),
    }
    places = {name: queues.place(SiteNode(Node("c1", 1, 0), (name,))).queues for name in ("large", "debug", "stopped")}
    assert places == {"large": ("prod", "all"), "debug": ("all", "debug"), "stopped": ()}
    assert queues.place(SiteNode(Node("c1", 1, 0), ())).queues == ("prod", "all", "debug")


def test_a_queue_for_jobs_of_many_nodes_is_asked_for_no_fewer() -> None:
    queues = read_queues(json.dumps({"Queue": {"prod": ROUTED["prod"], "small": ROUTED["small"]}}))
    nodes = [queues.place(SiteNode(Node(f"c{number}", 4, 1 << 30), ("small",))) for number in range(12)]
    offers = QueueOffers("PBS", "site", queues.open, nodes, LEEWAY)
    some = Request(None, Compute(cores=Range.exactly(1), nodes=Range(1, 12)), duration=HOUR)
    assert [offer.count for offer in offers.answer(some, None, "exec", NOW, 1).offers] == [10]
    one = Request(None, Compute(cores=Range.exactly(1)), duration=HOUR)
    (reason,) = offers.answer(one, None, "exec", NOW, 1).reasons
    assert reason.message == "The queue prod of site takes jobs of 10 nodes or more, and 1 was asked for."


def test_offers_follow_what_runs_and_say_why_not() -> None:
    nodes = [replace(node, queues=("workq", "debug")) for node in read.read_nodes(recorded("nodes"))]
    takes = read.read_takes(recorded("jobs"), NOW)
    eight = datetime(2016, 11, 16, 8, tzinfo=UTC)
    assert takes == (Take("x3006c0s13b1n0", eight - 2 * HOUR, eight, cores=32),)
    offers = QueueOffers("PBS", "site", read_queues(recorded("queues")).open, nodes, LEEWAY)
    request = Request(None, Compute(cores=Range.exactly(64)), duration=HOUR)
    answer = offers.answer(request, SitePlan(tuple(nodes), takes), "exec", NOW, 1)
    assert [(offer.queue, offer.start) for offer in answer.offers] == [("workq", eight)]
    large = Request(None, Compute(cores=Range.exactly(65)), duration=HOUR)
    reasons = offers.answer(large, None, "exec", NOW, 1).reasons
    assert reasons[0].message == "The queue workq of site gives at most 64 cores on a node, and 65 were asked for."
    assert "takes no jobs now" in reasons[1].message


def running(hosts: str, vnodes: str, place: str = "scatter") -> str:
    job = {"job_state": "R", "stime": "Wed Nov 16 06:00:00 2016", "exec_host": hosts, "exec_vnode": vnodes}
    return json.dumps({"Jobs": {"1.vbox": job | {"Resource_List": {"walltime": "02:00:00", "place": place}}}})


def test_what_jobs_have_is_read_with_gpus_and_all_vnodes_of_a_chunk() -> None:
    text = running("c1/0*12+c2/3", "(c1[0]:ncpus=8:ngpus=2:mem=8192mb+c1[1]:ncpus=4:ngpus=1)+(c2:ncpus=1)")
    assert [(take.where, take.cores, take.gpus) for take in read.read_takes(text, NOW)] == [("c1", 12, 3), ("c2", 1, 0)]
    assert [(take.where, take.cores) for take in read.read_takes(running("c1/0*2", ""), NOW)] == [("c1", 2)]


def test_a_job_that_has_its_nodes_for_itself_has_all_of_them() -> None:
    nodes = {name: Node(name, 64, 0, 4) for name in ("c1", "c2")}
    described = {
        "c1": {"sharing": "default_excl", "resources_available": {"host": "c1"}},
        "c2": {"sharing": "default_shared"},
    }
    exclusive = read.read_exclusive(json.dumps({"nodes": described}))
    assert exclusive == {"c1"}
    both = running("c1/0+c2/0", "(c1:ncpus=1)+(c2:ncpus=1)")
    assert [take.cores for take in read.read_takes(both, NOW, nodes, exclusive)] == [64, 1]
    alone = running("c1/0+c2/0", "(c1:ncpus=1)+(c2:ncpus=1)", place="scatter:exclhost")
    assert [(take.cores, take.gpus) for take in read.read_takes(alone, NOW, nodes)] == [(64, 4), (64, 4)]


def test_what_is_asked_is_said_in_its_words() -> None:
    amounts = Amounts(Shape(4, 3 << 30, gpus=1), nodes=2, time=HOUR, parts=3)
    assert words_for(PbsWish("workq", amounts, NOW), SchedulerOptions(project="p1")) == (
        *("-r", "y"),  # PBS refuses arrays otherwise
        *("-l", "select=2:ncpus=4:mpiprocs=4:mem=3072mb:ngpus=1", "-l", "walltime=01:02:00", "-l", "place=scatter"),
        *("-q", "workq", "-P", "p1", "-a", "201611160630.00", "-J", "0-2"),
    )


def test_what_a_site_requires_of_every_job_is_added_and_nothing_that_sublet_says_itself() -> None:
    site = Pbs(name="site", options=("-A my-project", "-l filesystems=home:eagle"))
    words = words_for(PbsWish("", Amounts(Shape(1, 0), time=HOUR)), SchedulerOptions(), site.options)
    assert words[-4:] == ("-A", "my-project", "-l", "filesystems=home:eagle")


@pytest.mark.parametrize(
    "option",
    ["-l walltime=1:00:00", "-l select=1", "-N name", "-A a b", "-v X=1", "-l a=b -W x=y", "-A a\n", "-l a=$(b)"],
)
def test_other_options_can_not_be_added(option: str) -> None:
    with pytest.raises(ValueError, match="can't be added"):
        Pbs(name="site", options=(option,))


def test_a_job_that_is_no_array_is_never_run_again() -> None:
    assert words_for(PbsWish("", Amounts(Shape(1, 0), time=HOUR)), SchedulerOptions())[:2] == ("-r", "n")


def test_a_host_that_is_several_vnodes_is_one_node_without_those_that_are_away() -> None:
    def vnode(name: str, cores: int, state: str = "free") -> dict[str, object]:
        has = {"host": "ice", "mem": f"{cores}gb", "ncpus": cores, "ngpus": cores // 4, "vnode": name}
        return {"Mom": "ice", "pcpus": cores, "state": state, "resources_available": has}

    vnodes = {"ice": vnode("ice", 0), "ice[0]": vnode("ice[0]", 4), "ice[1]": vnode("ice[1]", 8)}
    (whole,) = read.read_nodes(json.dumps({"nodes": vnodes}))
    assert whole.node == Node("ice", 12, 12 << 30, 3)
    vnodes["ice[1]"] = vnode("ice[1]", 8, "offline")
    (part,) = read.read_nodes(json.dumps({"nodes": vnodes}))
    assert (part.node.cores, part.here) == (4, True)
    (gone,) = read.read_nodes(json.dumps({"nodes": {name: vnode(name, 4, "down,offline") for name in vnodes}}))
    assert not gone.here


def test_a_job_that_was_deleted_before_it_started_was_cancelled() -> None:
    estimated = {"start_time": "Thu Nov 17 06:00:00 2016"}  # which PBS keeps
    job = {"Job_Name": f"s-{KEY}8", "job_state": "F", "substate": 91, "comment": "Not Running: Not enough cpus"}
    job |= {"mtime": "Wed Nov 16 06:00:00 2016", "estimated": estimated}
    state = judge(STATES, SiteLook(claimed=True), read.read_jobs(json.dumps({"Jobs": {"8.vbox": job}}))[f"{KEY}8"])
    assert state
    assert state.end
    assert (state.end.kind, state.end.detail) == (EndKind.CANCELLED, "it had not started")
    assert state.started is None


@pytest.mark.parametrize(("types", "is_own"), [("u", True), ("o", False), ("s", False), ("uo", False)])
def test_a_job_that_an_operator_holds_is_not_told_as_its_owners_pause(types: str, *, is_own: bool) -> None:
    job = {"Job_Name": f"s-{KEY}8", "job_state": "H", "queue": "workq", "Hold_Types": types}
    state = judge(STATES, SiteLook(claimed=True), read.read_jobs(json.dumps({"Jobs": {"8.vbox": job}}))[f"{KEY}8"])
    assert state
    assert state.marks == (PAUSED if is_own else NONE)
    assert ("an administrator there, who alone can release it" in state.condition) is not is_own


def test_names_that_look_like_numbers_and_single_backslashes_are_read() -> None:
    text = r"""{"Jobs": {"9.vbox": {"Job_Name": 007, "Account_Name":0042,
        "Variable_List": {"PS1":"\u@\h \[x\]", "REGEX":"a\.b\\c\"d"}},
        "10.vbox": {"Job_Name": "s-a", "job_state": "R"}}}"""
    assert read.read_jobs(text)["a"].state == "R"


@pytest.mark.parametrize(
    "word", ["0x1F", ".5", "+1", "1.", "nan", "-inf", "NaN", "Infinity", "007", "1e5", "-0.5", "00"]
)
def test_names_that_c_reads_as_numbers_stand_without_quotation_marks(word: str) -> None:
    first = f'{{"Job_Name":{word}, "comment":"is ,:{word}, {{{word}}}", "Variable_List": {{"A":{word}, "B":true}}}}'
    second = f'{{"Job_Name": "s-a", "job_state": "R", "comment":"x \\": {word}, y"}}'
    text = f'{{"Jobs": {{"9.vbox": {first}, "10.vbox": {second}}}}}'
    assert read.read_jobs(text)["a"].reason == f'x ": {word}, y'
    assert read.read_json(text)["Jobs"]["9.vbox"]["comment"] == f"is ,:{word}, {{{word}}}"


def test_an_answer_that_can_not_be_read_is_no_answer() -> None:
    cut = Outcome(0, recorded("jobs")[:700].encode(), b"")
    with pytest.raises(PlatformUnreachable, match="PBS's answer can't be read"):
        to.to_queue(Failures("site", "PBS", to.AWAY)).reader(cut)
    (history,) = to.to_remember([], ["a"])
    assert history.reader(cut) == {}


def test_an_answer_that_is_no_json_is_nothing() -> None:
    assert read.read_nodes("pbsnodes: cannot connect") == ()
    assert read.read_jobs("") == {}
