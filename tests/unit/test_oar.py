"""What OAR's commands print (2.5.9, recorded) is understood, and what is asked of it is said in its words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.offer import Node, Reason, Take
from sublet.booking.model.request import Compute, Range, Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.batch.fitting import find_untyped
from sublet.platforms.batch.planning import SitePlan, windows_ahead, windows_now
from sublet.platforms.batch.site import SiteNode
from sublet.platforms.batch.states import SiteLook, judge
from sublet.platforms.oar import readers as read
from sublet.platforms.oar.offers import limit_hosts, share_memory
from sublet.platforms.oar.options import OarWish, words_for, words_to_reserve
from sublet.platforms.oar.platform import Oar
from sublet.platforms.oar.queues import OarQueues
from sublet.platforms.oar.states import STATES, describe_error
from sublet.reach.port import Command, Outcome

pytestmark = pytest.mark.anyio
RECORDED = Path(__file__).parent.parent / "recorded" / "oar"
KEY = "4f0c1bd4-52a5-4b6c-9b0d-0d6f5a1f7a0"
GIB, HOUR = 1 << 30, timedelta(hours=1)
NOW = datetime(2026, 11, 17, 11, 24, tzinfo=UTC)


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.json").read_text()


def plan() -> SitePlan:
    resources = read.read_resources(recorded("nodes"))
    return SitePlan(read.read_nodes(resources), read.read_gantt(recorded("gantt"), resources))


def test_resources_become_nodes_with_cores_memory_and_gpus() -> None:
    resources = read.read_resources(recorded("nodes"))
    nodes = sorted(read.read_nodes(resources), key=lambda each: each.node.name)
    assert [each.node for each in nodes] == [Node("c1", 2, 2 * GIB), Node("c2", 2, 2 * GIB, 2)]
    assert all(each.here for each in nodes)


@pytest.mark.parametrize("text", ["", "null", "not JSON", "{}", "[]", '{"1": null}'])
def test_an_answer_with_nothing_in_it_is_no_node_and_no_job(text: str) -> None:
    assert read.read_resources(text) == ()
    assert read.read_jobs(text if text != '{"1": null}' else "{}") == {}
    assert read.read_gantt(text if text != '{"1": null}' else "{}", []) == ()


def test_licences_and_what_is_dead_are_no_nodes_to_run_on() -> None:
    text = """{"1": {"resource_id": 1, "network_address": "c1", "core": 1, "state": "Dead", "type": "default"},
        "2": {"resource_id": 2, "network_address": "", "state": "Alive", "type": "licence"}}"""
    [node] = read.read_nodes(read.read_resources(text), memory=GIB)
    assert (node.node, node.here) == (Node("c1", 1, GIB), False)


def test_jobs_are_read_by_their_names_and_parts_by_their_index() -> None:
    rows = read.read_jobs(recorded("jobs"))
    states = {key.replace(KEY, ""): (row.state, row.number) for key, row in rows.items()}
    assert states == {
        "1": ("Running", "1"),
        "2/1": ("toLaunch", "2"),
        "3": ("Hold", "4"),
        "4": ("Running", "5"),
        "5": ("Waiting", "6"),
    }
    waiting = judge(STATES, SiteLook(claimed=True), rows[f"{KEY}5"])
    assert waiting
    assert waiting.condition == "OAR job 6 waits in default; planned to start at 2026-11-18 09:00 UTC"
    held = judge(STATES, SiteLook(claimed=True), rows[f"{KEY}3"])
    assert held
    assert "held" in held.condition
    assert held.marks == PAUSED


def test_a_job_that_an_administrator_holds_is_not_told_as_its_owners_pause() -> None:
    event = {"type": "HOLD_WAITING_JOB", "description": "User root launched oarhold on the job 3"}
    job = {"name": KEY, "state": "Hold", "owner": "marie", "events": [event], "scheduledStart": 1794914631}
    state = judge(STATES, SiteLook(claimed=True), read.read_jobs(json.dumps({"3": job}))[KEY])
    assert state
    assert state.condition == "OAR job 3 is held in default (by root there; `sublet resume` releases it)"
    assert state.marks == NONE
    event["description"] = "User marie launched oarhold on the job 3"
    own = judge(STATES, SiteLook(claimed=True), read.read_jobs(json.dumps({"3": job}))[KEY])
    assert own
    assert own.marks == PAUSED


def test_what_is_no_answer_of_oarstat_is_no_empty_queue() -> None:
    assert read.read_queue("") == read.read_queue("{}\n") == {}
    with pytest.raises(ValueError, match="no answer of oarstat"):
        read.read_queue('{"1": {"name": ')


def test_an_end_is_told_by_the_exit_code_or_by_what_happened_to_the_job() -> None:
    rows = read.read_jobs(recorded("past"))
    ends = {}
    for key, row in rows.items():
        state = judge(STATES, SiteLook(claimed=True, ran=True), row)
        assert state
        assert state.end
        ends[key.replace(KEY, "")] = (state.end.kind, state.end.code)
    assert ends == {
        "1": (EndKind.CANCELLED, None),
        "2/0": (EndKind.EXITED, 3),
        "2/1": (EndKind.EXITED, 3),
        "4": (EndKind.TIMEOUT, None),
    }
    assert describe_error({"SUSPECTED_NODE_KILL", "FRAG_JOB_REQUEST"}) == "node lost"
    assert describe_error(set()) == "Error"


def test_the_plan_finds_the_first_time_with_room_beside_jobs_and_reservations() -> None:
    one, two = Amounts(Shape(1, 0), time=HOUR), Amounts(Shape(2, 0), nodes=2, time=HOUR)
    free = datetime.fromtimestamp(1794914631, UTC)  # when the short job on c1 ends
    assert plan().find_start(one, HOUR, [Window(NOW, NOW + HOUR)]) == max(NOW, free)
    morning = datetime(2026, 11, 18, 8, 30, tzinfo=UTC)
    assert plan().find_start(two, HOUR, [Window(morning, morning + 8 * HOUR)]) == morning + 1.5 * HOUR
    assert plan().find_start(two, HOUR, [Window(morning, morning + HOUR)]) is None
    assert Take("c2", morning + HOUR / 2, morning + 1.5 * HOUR, cores=1, gpus=1) in plan().takes


def test_what_is_asked_is_said_in_oars_words() -> None:
    wish = OarWish("fast", Amounts(Shape(2, 0), nodes=3, time=HOUR, parts=4))
    words = words_for(wish, SchedulerOptions(project="mine"), "cluster='dahu'")
    assert words == (
        *("-l", "/nodes=3/core=2,walltime=1:02:00", "-q", "fast", "--project", "mine"),
        *("-p", "(cluster='dahu')", "--array", "4"),
    )
    gpus = OarWish("default", Amounts(Shape(8, 0, gpus=2), time=HOUR))
    assert words_to_reserve(gpus, SchedulerOptions(), NOW) == (
        *("-r", "2026-11-17 11:24:00", "-l", "/nodes=1/gpu=2,walltime=1:02:00"),
    )


def test_a_type_of_gpu_is_a_property_and_those_that_are_there_are_told() -> None:
    row = '{"resource_id": 1, "network_address": "c1", "core": 1, "gpu": 1, "gpu_model": "A100", "state": "Alive"}'
    nodes = read.read_nodes(read.read_resources(f'{{"1": {row}}}'), GIB)
    assert [each.gpu_types for each in nodes] == [("A100",)]
    wish = OarWish("", Amounts(Shape(1, 0, gpus=1), time=HOUR))
    assert words_for(wish, SchedulerOptions(gpu_type="A100"), "x=1")[-2:] == ("-p", "(x=1) AND (gpu_model = 'A100')")
    asked = Request(None, Compute(gpus=Range.exactly(1)), scheduler=SchedulerOptions(gpu_type="V100"))
    reason = find_untyped(asked, nodes, "site")
    assert reason
    assert reason.message == "site has no GPUs of the type V100; it has: A100."
    assert find_untyped(replace(asked, scheduler=SchedulerOptions(gpu_type="A100")), nodes, "site") is None
    none = find_untyped(replace(asked, compute=Compute()), nodes, "site")
    assert none
    assert none.message == "site: a type of GPU was asked for, and no GPU."


def test_memory_comes_with_cores() -> None:
    nodes = read.read_nodes(read.read_resources(recorded("nodes")))
    assert share_memory(Amounts(Shape(1, GIB // 2)), nodes).shape.cores == 1
    assert share_memory(Amounts(Shape(1, 2 * GIB)), nodes).shape.cores == 2
    assert share_memory(Amounts(Shape(1, 9 * GIB)), nodes).shape.cores == 1


def test_only_what_may_start_now_is_left_to_the_queue() -> None:
    request = Request(None, Compute(cores=Range(1, 1)), windows=(Window(NOW + HOUR, NOW + 2 * HOUR),))
    assert windows_now(request, NOW) == []
    assert windows_now(request, NOW + 1.5 * HOUR) == [Window(NOW + 1.5 * HOUR, NOW + 2 * HOUR)]
    assert windows_ahead(request, NOW) == [Window(NOW + HOUR, NOW + 2 * HOUR)]


def test_where_nodes_differ_only_those_with_enough_memory_and_disk_are_asked_for() -> None:
    nodes = [SiteNode(Node(f"c{number}", 8, number * GIB, 0, GIB), ()) for number in (2, 4, 8)]
    wanted = Amounts(Shape(1, 3 * GIB), time=HOUR)
    assert limit_hosts(Amounts(Shape(1, GIB)), nodes) == ""
    assert limit_hosts(Amounts(Shape(1, 9 * GIB)), nodes) == ""
    assert limit_hosts(Amounts(Shape(1, 5 * GIB)), nodes) == "network_address IN ('c8')"
    hosts = limit_hosts(wanted, nodes)
    words = words_for(OarWish("", wanted, hosts=hosts), SchedulerOptions(), "x=1")
    assert words[-2:] == ("-p", "(x=1) AND (network_address NOT IN ('c2'))")
    busy = SitePlan(tuple(nodes), tuple(Take(f"c{n}", NOW, NOW + HOUR, cores=8) for n in (4, 8)))
    assert busy.find_start(wanted, HOUR, [Window(NOW, NOW + 3 * HOUR)]) == NOW + HOUR


class AnsweringReach:
    """A site whose queues `default` and `closed` exist, and the last of them is disabled."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def run_all(self, commands: Sequence[Command[Outcome]]) -> list[Outcome]:
        conditions = [command.argv[-1] for command in commands]
        self.asked += conditions
        resource = b'{"1": {"resource_id": 1, "network_address": "c1", "core": 1, "state": "Alive"}}'
        return [Outcome(0, resource if self._holds(condition) else b"{}", b"") for condition in conditions]

    @staticmethod
    def _holds(condition: str) -> bool:
        is_absent = "NOT EXISTS" in condition
        return ("'closed'" in condition and not is_absent) or ("'nowhere'" in condition and is_absent)


async def test_a_queue_that_is_disabled_or_not_there_takes_no_jobs_and_is_asked_for_rarely() -> None:
    queues, reach = OarQueues(), AnsweringReach()

    async def find(queue: str) -> str:
        refusal = await queues.find_refusal("site", reach, queue, HOUR)  # type: ignore[arg-type]
        return refusal.message if refusal else ""

    for _ in range(2):
        assert await find("default") == ""
        assert await find("closed") == "site takes no jobs in the queue closed now: it is disabled."
        assert await find("nowhere") == "site has no queue nowhere."
    assert len(reach.asked) == 6
    assert await find("x' OR '1'='1") == "site has no queue x' OR '1'='1."
    assert len(reach.asked) == 6, "what is no name gets into no condition"
    queues.forget()
    await find("closed")
    assert len(reach.asked) == 8


async def test_what_somebody_else_reserved_meanwhile_is_planned_around_once_more(tmp_path: Path) -> None:
    oar = Oar(name="site", host="h", user="u")
    refusal = Reason("urn:refused-by-platform", "schedule", "OAR reserves nothing for it: no")
    plans = [plan(), replace(plan(), takes=())]
    tried: list[SitePlan] = []

    async def reserve(by: SitePlan) -> Reason | None:
        tried.append(by)
        return refusal

    async def replan() -> SitePlan | None:
        return plans[1]

    async def stay() -> SitePlan | None:
        return plans[0]

    assert await oar.reserve_by_plan(plans[0], reserve, replan) == refusal
    assert tried == plans
    tried.clear()
    assert await oar.reserve_by_plan(plans[0], reserve, stay) == refusal
    assert tried == plans[:1], "the plan is as it was: it was refused for another reason"
