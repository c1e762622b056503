"""How sessions on Kubernetes are doing, and how they ended, out of what a real 1.20 said of their pods."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.job import State
from sublet.booking.model.session import EndKind, Usage
from sublet.platforms.kubernetes.api import Object
from sublet.platforms.kubernetes.states import Left, Sight, choose_pod, describe_end, has_begun, judge, runs
from sublet.platforms.kubernetes.survey import read_node, read_quota, takes_pods

RECORDED = Path(__file__).parents[1] / "recorded" / "kubernetes" / "1.20"
NOW = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DELETED = "2026-11-17T12:00:00Z"


def recorded(name: str) -> Object:
    answer: Object = json.loads((RECORDED / f"{name}.json").read_text())
    return answer


ENDS: list[tuple[str, Left, EndKind, int | None, str]] = [
    ("exited", Left(), EndKind.EXITED, 3, ""),
    ("exited", Left(code=141), EndKind.SIGNALLED, None, ""),
    ("exited", Left(is_over_time=True), EndKind.TIMEOUT, None, ""),
    ("exited", Left(unstarted="not-started", detail="x: no such program"), EndKind.NOT_STARTED, None, "x: no such"),
    ("exited", Left(unstarted="staging-failed"), EndKind.STAGING_FAILED, None, ""),
    ("out-of-memory", Left(code=137, killed=1), EndKind.OUT_OF_MEMORY, 137, "OOMKilled"),
    ("out-of-memory-child", Left(code=0, killed=1), EndKind.EXITED, 0, "one of its processes was stopped for lack"),
    ("evicted", Left(), EndKind.DISK_FULL, None, 'Evicted: Usage of EmptyDir volume "session" exceeds'),
]


@pytest.mark.parametrize(("name", "left", "kind", "code", "words"), ENDS)
def test_an_end_is_told_as_the_cluster_and_the_pod_tell_it(
    name: str, left: Left, kind: EndKind, code: int | None, words: str
) -> None:
    state = describe_end(recorded(name), left, "")
    assert state.end is not None
    assert (state.state, state.end.kind, state.end.code) == (State.ENDED, kind, code)
    assert state.end.detail.startswith(words)


def change(pod: Object, reason: str, message: str = "", main: Any = None) -> Object:
    pod["status"] |= {"phase": "Failed", "reason": reason, "message": message}
    if main is not None:
        next(each for each in pod["status"]["containerStatuses"] if each["name"] == "main")["state"] = main
    return pod


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        ("DeadlineExceeded", "Pod was active longer than specified deadline", EndKind.TIMEOUT),
        ("Evicted", "The node was low on resource: memory.", EndKind.PREEMPTED),
        ("Preempting", "Preempted in order to admit critical pod", EndKind.PREEMPTED),
        ("NodeLost", "Node n1 which was running pod is unresponsive", EndKind.NODE_LOST),
        ("Shutdown", "Node is shutting, evicting pods", EndKind.NODE_LOST),
        ("Odd", "nobody knows", EndKind.UNKNOWN),
    ],
)
def test_what_became_of_a_pod_as_a_whole_comes_before_its_containers(reason: str, message: str, kind: EndKind) -> None:
    state = judge(change(recorded("exited"), reason, message, main={}), NOW, MINUTE)
    assert state.end is not None
    assert (state.state, state.end.kind) == (State.ENDED, kind)
    assert message in state.end.detail


@pytest.mark.parametrize(
    ("reason", "kind"), [("StartError", EndKind.NOT_STARTED), ("ContainerStatusUnknown", EndKind.NODE_LOST)]
)
def test_a_container_that_never_ran_is_told_in_its_runtimes_words(reason: str, kind: EndKind) -> None:
    main = {"terminated": {"exitCode": 128, "reason": reason, "message": "exec: no such file"}}
    pod = recorded("exited")
    next(each for each in pod["status"]["containerStatuses"] if each["name"] == "main")["state"] = main
    state = judge(pod, NOW, MINUTE)
    assert state.end is not None
    assert (state.end.kind, state.end.detail) == (kind, f"{reason}: exec: no such file")


def test_whoever_cancelled_it_is_named_and_what_it_used_is_kept() -> None:
    state = describe_end(recorded("out-of-memory"), Left(usage=Usage(0.0, 1.5, 10)), "marie")
    assert state.end is not None
    assert (state.end.kind, state.end.by, state.end.usage) == (EndKind.CANCELLED, "marie", Usage(1.0, 1.5, 10))


def test_what_waits_says_so_in_the_schedulers_words() -> None:
    state = judge(recorded("unschedulable"), NOW, MINUTE)
    assert (state.state, state.condition) == (
        State.QUEUED,
        "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.",
    )


@pytest.mark.parametrize(("name", "word"), [("missing-image", "ErrImageNeverPull"), ("unpulled-image", "ErrImagePull")])
def test_an_image_that_can_not_be_had_ends_it_in_the_kubelets_words(name: str, word: str) -> None:
    state = judge(recorded(name), NOW, MINUTE)
    assert state.end is not None
    assert state.end.kind is EndKind.NOT_STARTED
    assert f"could not pull the image: {word}: " in state.end.detail


def test_a_pull_that_fails_is_tried_again_for_a_while() -> None:
    pod = recorded("unpulled-image")
    began = datetime.fromisoformat(pod["status"]["startTime"])
    state = judge(pod, began + timedelta(seconds=10), MINUTE)
    assert (state.state, state.condition[:14]) == (State.QUEUED, "ErrImagePull: ")
    assert judge(recorded("missing-image"), began, timedelta(days=9)).state is State.ENDED  # no later try can help


def test_the_pod_in_which_it_began_is_its_own_and_no_other() -> None:
    first, second = recorded("exited"), recorded("exited")
    second["metadata"] |= {"uid": "second", "creationTimestamp": "2030-01-01T00:00:00Z"}
    sight = Sight(pods=[second, first])
    assert choose_pod(sight, "") is first
    assert choose_pod(sight, "second") is second
    assert choose_pod(sight, "gone") is None
    assert choose_pod(Sight(), "") is None


def test_whether_a_program_began_and_its_keeper_can_be_asked() -> None:
    pod = recorded("exited")
    assert has_begun(pod)
    assert runs(pod, "keeper")
    assert not runs(pod, "main")
    pod["metadata"]["deletionTimestamp"] = DELETED
    assert not runs(pod, "keeper")
    assert not has_begun(recorded("unschedulable"))


def test_nodes_and_quotas_of_a_real_cluster_are_read() -> None:
    (node,) = recorded("nodes")["items"]
    assert takes_pods(node, {})
    assert read_node(node, "nvidia.com/gpu").cores == 2
    room = read_quota(recorded("quota")["items"], "nvidia.com/gpu")
    assert room is not None
    assert (room.most.cores, room.most.memory) == (2, (1 << 30) - (16 << 20))
