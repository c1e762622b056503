"""What a namespace has to offer, by its nodes, its quota, and what runs and waits there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sublet.booking.model.offer import Node, Predicted
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Shape
from sublet.platforms.kubernetes.choosing import NodeChoice
from sublet.platforms.kubernetes.offers import KubernetesOffers, list_takes
from sublet.platforms.kubernetes.survey import (
    UNBOUNDED,
    ClusterView,
    PodUse,
    QuotaRoom,
    limit_nodes,
    read_node,
    read_quota,
    read_uses,
    share_quota,
    takes_pods,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 1 << 30
HOUR = timedelta(hours=1)
GPU = "nvidia.com/gpu"
NODE = Node("n1", 4, 8 * GIB, 1, 100 * GIB)
SEEN = ClusterView(NOW, "alice", (NODE,), sees_nodes=True)
OFFERS = KubernetesOffers("lab")


def ask(cores: int = 1, **more: Any) -> Request:
    compute = Compute(cores=Range(cores, cores), memory=Range(GIB, GIB), **more.pop("compute", {}))
    return Request(Executable("command", {}), compute, duration=HOUR, **more)


def quota(most: int, left: int) -> QuotaRoom:
    whole = Node("", most, UNBOUNDED, UNBOUNDED, UNBOUNDED)
    return QuotaRoom(whole, Shape(left, UNBOUNDED, UNBOUNDED, UNBOUNDED))


def start_of(view: ClusterView, request: Request) -> datetime:
    (offer,) = OFFERS.answer(view, request, "exec", NOW).offers
    assert isinstance(offer.terms, Predicted)
    return offer.start


def refusal_of(view: ClusterView, request: Request, offers: KubernetesOffers = OFFERS) -> str:
    answer = offers.answer(view, request, "exec", NOW)
    assert not answer.offers
    return answer.reasons[0].message


def test_what_is_free_is_offered_now_and_what_runs_is_waited_for() -> None:
    assert start_of(SEEN, ask(4)) == NOW
    busy = replace(SEEN, uses=(PodUse("n1", Shape(2, GIB), NOW + timedelta(minutes=20)),))
    assert start_of(busy, ask(2)) == NOW
    assert NOW + timedelta(minutes=20) < start_of(busy, ask(3)) < NOW + timedelta(minutes=21)


def test_a_pod_that_says_no_end_and_those_that_wait_are_reckoned_with_an_hour() -> None:
    busy = replace(SEEN, uses=(PodUse("n1", Shape(3, GIB)), PodUse("", Shape(4, GIB))))
    assert start_of(busy, ask(4)) > NOW + 2 * HOUR


def test_a_quota_bounds_what_nodes_have() -> None:
    bounded = replace(SEEN, quota=quota(3, 3))
    assert [node.cores for node in limit_nodes(bounded, None)] == [3]
    assert start_of(bounded, ask(3)) == NOW
    assert "4" in refusal_of(bounded, ask(4))
    used = replace(SEEN, quota=quota(3, 1), uses=(PodUse("n1", Shape(2, GIB), NOW + timedelta(minutes=5), True),))
    assert start_of(used, ask(1)) == NOW
    assert NOW + timedelta(minutes=5) <= start_of(used, ask(2)) < NOW + timedelta(minutes=6)


def test_without_nodes_the_quota_or_the_settings_say_what_there_is() -> None:
    hidden = ClusterView(NOW, "alice", quota=quota(8, 8))
    (node,) = limit_nodes(hidden, None)
    assert (node.name, node.cores, node.gpus) == ("alice", 8, 0)
    assert start_of(hidden, ask(8)) == NOW
    nothing = ClusterView(NOW, "alice")
    assert "neither its nodes nor a quota" in refusal_of(nothing, ask())
    stated = KubernetesOffers("lab", Shape(2, 4 * GIB, 1))
    assert stated.answer(nothing, ask(2), "exec", NOW).offers
    assert "2" in refusal_of(nothing, ask(3), stated)
    assert "no node that takes pods now" in refusal_of(ClusterView(NOW, "alice", sees_nodes=True), ask())


def test_what_one_pod_can_not_do_is_refused_with_the_reason() -> None:
    closed = replace(SEEN, missing=("ports",))
    lab = replace(ask(), executable=Executable("interactive", {}))
    assert "may not create pods/portforward" in refusal_of(closed, lab)
    short = KubernetesOffers("lab", longest=timedelta(minutes=30))
    assert "up to 30 min" in refusal_of(SEEN, ask(), short)


def on_two_nodes(cores: int = 1) -> Request:
    wanted = ask(cores, compute={"nodes": Range(2, 2)})
    return replace(wanted, executable=Executable("command", "", {"argv": ["x"], "each_node": True}))


def test_several_nodes_are_several_pods_of_a_newer_server_for_a_program_that_is_for_each() -> None:
    two = replace(SEEN, nodes=(NODE, replace(NODE, name="n2")), version="1.22+")
    (offer,) = OFFERS.answer(two, on_two_nodes(4), "exec", NOW).offers
    assert (offer.count, offer.start, offer.amounts.total.cores) == (2, NOW, 8)
    older = refusal_of(replace(two, version="1.20"), on_two_nodes())
    assert "it is Kubernetes 1.20, and several need 1.22" in older
    (reason,) = OFFERS.answer(two, ask(compute={"nodes": Range(2, 2)}), "exec", NOW).reasons
    assert "no pod can start a program in another" in reason.message
    assert reason.nearest == "each_node: true, or nodes: 1"
    assert "has 1 such node" in refusal_of(replace(SEEN, version="1.23"), on_two_nodes())


def test_several_nodes_start_when_all_of_them_are_free() -> None:
    busy = (PodUse("n2", Shape(2, GIB), NOW + timedelta(minutes=20)),)
    two = replace(SEEN, nodes=(NODE, replace(NODE, name="n2")), version="1.25", uses=busy)
    assert start_of(two, on_two_nodes(2)) == NOW
    assert start_of(two, on_two_nodes(3)) > NOW + timedelta(minutes=19)


def test_several_nodes_take_of_a_quota_all_together() -> None:
    two = replace(SEEN, nodes=(NODE, replace(NODE, name="n2")), version="1.25", quota=quota(6, 6))
    assert start_of(two, on_two_nodes(3)) == NOW
    assert "the quota of alice allows less cores than 2 such nodes have" in refusal_of(two, on_two_nodes(4))
    hidden = ClusterView(NOW, "alice", quota=quota(6, 6), version="1.25")
    assert start_of(hidden, on_two_nodes(3)) == NOW
    assert "nodes of up to 3 cores" in refusal_of(hidden, on_two_nodes(4))


TYPE = "nvidia.com/gpu.product"
CHOICE = NodeChoice("lab", TYPE, {"matlab": "example.com/matlab"})
LABELLED = replace(
    SEEN,
    nodes=(NODE, replace(NODE, name="n2", cores=2)),
    labels={"n1": {TYPE: "A100", "disk": "ssd"}, "n2": {TYPE: "H100"}},
    counts={"n1": {"example.com/matlab": 2}},
)


def with_options(gpus: int = 1, cores: int = 1, **asked: str) -> Request:
    return replace(ask(cores, compute={"gpus": Range(gpus, gpus)}), scheduler=SchedulerOptions(**asked))


def test_nodes_are_chosen_by_the_labels_types_and_licences_that_were_asked_for() -> None:
    choosing = KubernetesOffers("lab", choice=CHOICE)
    for cores, asked in ((4, {"gpu_type": "A100"}), (2, {"gpu_type": "H100"}), (4, {"constraint": "disk=ssd"})):
        assert choosing.answer(LABELLED, with_options(cores=cores, **asked), "exec", NOW).offers
    assert "2" in refusal_of(LABELLED, with_options(cores=3, gpu_type="H100"), choosing), "the others don't count"
    wrong = refusal_of(LABELLED, with_options(gpu_type="V100"), choosing)
    assert wrong == f"lab has no node with {TYPE}=V100; nodes there have {TYPE}: A100, H100."
    assert "no node there has a label tape" in refusal_of(LABELLED, with_options(constraint="tape&disk=ssd"), choosing)
    assert "is no label of a node" in refusal_of(LABELLED, with_options(constraint="a|b"), choosing)
    assert "and no GPU" in refusal_of(LABELLED, with_options(gpus=0, gpu_type="A100"), choosing)
    assert choosing.answer(LABELLED, with_options(licenses="matlab:2"), "exec", NOW).offers
    assert "at most 2 licenses of matlab" in refusal_of(LABELLED, with_options(licenses="matlab:3"), choosing)
    assert "it counts: matlab" in refusal_of(LABELLED, with_options(licenses="stata"), choosing)
    hidden = ClusterView(NOW, "alice", quota=quota(8, 8))
    assert "may not be seen" in refusal_of(hidden, with_options(gpu_type="A100"), choosing)
    booked = KubernetesOffers("lab", choice=replace(CHOICE, is_booked=True))
    assert "a calendar that knows no such thing" in next(booked.unfit(with_options(gpu_type="A100"))).message


def test_windows_and_what_comes_before_move_the_start() -> None:
    later = NOW + timedelta(hours=3)
    assert start_of(SEEN, ask(windows=(Window(later, later + HOUR),))) == later
    assert start_of(SEEN, ask(not_before=later)) == later
    full = replace(SEEN, uses=(PodUse("n1", Shape(4, GIB), NOW + timedelta(hours=9)),))
    assert "no room in the windows" in refusal_of(full, ask(windows=(Window(later, later + HOUR),)))
    assert "are over" in refusal_of(SEEN, ask(windows=(Window(NOW - 2 * HOUR, NOW - HOUR),)))
    both = (Window(later, later + HOUR), Window(later + 5 * HOUR, later + 6 * HOUR))
    assert [offer.start for offer in OFFERS.answer(SEEN, ask(windows=both), "exec", NOW).offers] == [
        later,
        later + 5 * HOUR,
    ]


def test_nodes_that_are_booked_have_no_more_in_all_than_the_quota() -> None:
    nodes = [replace(NODE, name=name) for name in ("a", "b", "c")]
    assert [(node.name, node.cores) for node in share_quota(nodes, quota(6, 0))] == [("a", 4), ("b", 2)]
    assert share_quota(nodes, None) == nodes


def test_what_others_have_of_booked_nodes_is_taken() -> None:
    uses = (PodUse("n1", Shape(1, GIB)), PodUse("n1", Shape(2, GIB), is_ours=True), PodUse("gone", Shape(1, GIB)))
    takes = list(list_takes(replace(SEEN, uses=uses), [NODE], NOW, of_others=True))
    assert [(take.where, take.cores) for take in takes] == [("n1", 1)]


def test_nodes_pods_and_quotas_are_read_as_the_api_writes_them() -> None:
    room = {"cpu": "3920m", "memory": "15Gi", GPU: "2", "ephemeral-storage": "90Gi"}
    ready = [{"type": "Ready", "status": "True"}]
    node: dict[str, Any] = {"metadata": {"name": "n"}, "status": {"allocatable": room, "conditions": ready}}
    assert read_node(node, GPU) == Node("n", 3, 15 * GIB - (16 << 20), 2, 90 * GIB)
    assert takes_pods(node, {})
    assert not takes_pods(node, {"disk": "ssd"})
    assert takes_pods({**node, "metadata": {"name": "n", "labels": {"disk": "ssd"}}}, {"disk": "ssd"})
    assert not takes_pods({**node, "spec": {"unschedulable": True}}, {})
    assert not takes_pods({**node, "spec": {"taints": [{"key": "master", "effect": "NoSchedule"}]}}, {})
    assert not takes_pods({**node, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, {})
    requests = [{"resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}, {"resources": {}}]
    pod: dict[str, Any] = {"metadata": {}, "spec": {"nodeName": "n", "containers": requests}}
    over = {**pod, "status": {"phase": "Succeeded"}}
    notes = {"annotations": {"sublet.science/seconds": "60"}, "labels": {"sublet.science/owner": "me"}}
    begun = {**pod, "metadata": notes, "status": {"startTime": "2026-03-01T12:00:00Z"}}
    assert list(read_uses([pod, over, begun, pod], "me", GPU)) == [
        PodUse("n", Shape(2, GIB), NOW + timedelta(minutes=1)),
        PodUse("n", Shape(3, 2 * GIB)),
    ]
    hard, used = {"requests.cpu": "10", "limits.cpu": "8", f"requests.{GPU}": "1"}, {"limits.cpu": "1500m"}
    room_left = read_quota([{"status": {"hard": hard, "used": used}}], GPU)
    assert room_left is not None
    assert (room_left.most.cores, room_left.left.cores, room_left.most.gpus) == (7, 6, 1)  # what helps takes a part
    whole = read_quota([{"status": {"hard": {"requests.memory": "1Gi"}}}], GPU)
    assert whole is not None
    assert whole.most.memory == GIB - (16 << 20)
    assert read_quota([{"spec": {"scopes": ["BestEffort"]}, "status": {"hard": hard}}], GPU) is None
    assert read_quota([{"status": {"hard": {"services": "1"}}}], GPU) is None


def test_a_quota_that_was_made_a_moment_ago_counts_before_its_controller_has_seen_it() -> None:
    room = read_quota([{"spec": {"hard": {"requests.cpu": "4", "pods": "3"}}}], GPU)
    assert room is not None
    assert (room.most.cores, room.left.cores, room.pods_left) == (4, 4, 3)
    nothing_left = {"spec": {"hard": {"requests.cpu": "4"}}, "status": {"hard": {"requests.cpu": "0"}}}
    room = read_quota([nothing_left], GPU)
    assert room is not None
    assert room.most.cores == 0
