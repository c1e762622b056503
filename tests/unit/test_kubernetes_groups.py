"""Sessions of several pods: which pods are theirs, what they wait for, and whose end is that of all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import End, EndKind, Usage
from sublet.platforms.kubernetes.api import Object
from sublet.platforms.kubernetes.group_states import (
    choose_pods,
    describe_gathering,
    describe_group_end,
    find_failed,
)
from sublet.platforms.kubernetes.names import INDEX
from sublet.platforms.kubernetes.states import Left, Sight, judge
from sublet.platforms.kubernetes.survey import has_indexed_jobs

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STARTED, ENDED = "2026-03-01T11:00:00Z", "2026-03-01T11:01:00Z"
RUNNING: dict[str, Any] = {"running": {"startedAt": STARTED}}
SIGHT = Sight({"metadata": {"uid": "job"}})


def make_pod(number: int, uid: str = "", made: int = 0, *, address: str = "10.0.0.1", **states: Any) -> Object:
    listed = [{"name": name, "state": state} for name, state in states.items()]
    return {
        "metadata": {
            "uid": uid or f"uid-{number}",
            "name": f"pod-{number}",
            "annotations": {INDEX: str(number)},
            "creationTimestamp": (NOW + timedelta(seconds=made)).isoformat(),
        },
        "spec": {},
        "status": {"podIP": address, "startTime": STARTED, "containerStatuses": listed},
    }


def over(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": STARTED, "finishedAt": ENDED}}


def ended(after: int, kind: EndKind = EndKind.EXITED, code: int | None = 0) -> JobState:
    return JobState(State.ENDED, End(kind, code=code), ended=NOW + timedelta(seconds=after))


def end_of(
    pods: dict[int, Object], sight: Sight, failed: int | None, left: dict[int, Left], cancelled_by: str
) -> End | None:
    states = {number: judge(pod, NOW, timedelta(minutes=10)) for number, pod in pods.items()}
    return describe_group_end(pods, states, sight, failed, left, cancelled_by).end


def test_the_pods_that_were_let_start_are_a_sessions_own_and_none_that_replaces_them() -> None:
    old, new, other = make_pod(0, "old"), make_pod(0, "new", 5), make_pod(1)
    assert {number: pod["metadata"]["uid"] for number, pod in choose_pods([new, other, old]).items()} == {
        0: "old",
        1: "uid-1",
    }
    old["metadata"]["deletionTimestamp"] = ENDED
    assert choose_pods([new, old])[0]["metadata"]["uid"] == "new", "before they were let start another will do"
    told = {"0": "old", "1": "uid-1"}
    assert choose_pods([new, old, other], told)[0]["metadata"]["uid"] == "old"
    assert list(choose_pods([new, other], told)) == [1]
    del other["metadata"]["annotations"][INDEX]
    assert not choose_pods([other])


def test_what_is_waited_for_is_told_of_the_pod_that_is_not_there() -> None:
    there, waits = make_pod(0, stage=RUNNING), make_pod(1, address="")
    waits["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    pods = {0: there, 1: waits}
    assert describe_gathering(pods, 2) == "1 of its 2 pods are there; that of node 1: Unschedulable"
    assert describe_gathering({0: there}, 2) == "1 of its 2 pods are there"
    assert describe_gathering({0: there, 1: make_pod(1, stage=RUNNING)}, 2) == "its pods are being started"


@pytest.mark.parametrize(
    ("states", "failed"),
    [
        ({0: JobState(State.RUNNING), 1: JobState(State.RUNNING)}, None),
        ({0: ended(1), 1: JobState(State.RUNNING)}, None),
        ({0: ended(1), 1: ended(2)}, None),
        ({0: JobState(State.RUNNING), 1: ended(1, code=3)}, 1),
        ({0: ended(2, EndKind.SIGNALLED, None), 1: ended(1, code=3)}, 1),
        ({0: ended(1, code=4), 1: ended(1, code=3)}, 0),
        ({0: JobState(State.RUNNING)}, 1),
    ],
)
def test_the_first_that_fails_or_is_lost_decides(states: dict[int, JobState], failed: int | None) -> None:
    assert find_failed(states, 2) == failed


def test_all_ended_as_the_one_that_failed_and_used_what_they_used_together() -> None:
    pods = {0: make_pod(0, main=over(143)), 1: make_pod(1, main=over(3))}
    left = {0: Left(143, Usage(0, 2.0, 100)), 1: Left(3, Usage(0, 1.5, 300))}
    end = end_of(pods, SIGHT, 1, left, "")
    assert end
    assert (end.kind, end.code) == (EndKind.EXITED, 3)
    assert end.detail == "on node 1, whose output is among the results: nodes/1.err"
    assert end.usage == Usage(60.0, 3.5, 300)


def test_all_that_ended_well_ended_well_and_what_was_stopped_was_cancelled() -> None:
    pods = {0: make_pod(0, main=over(0)), 1: make_pod(1, main=over(0))}
    well = end_of(pods, SIGHT, None, {}, "")
    assert well == End(EndKind.EXITED, code=0)
    stopped = end_of(pods, SIGHT, 0, {}, "marie")
    assert stopped
    assert (stopped.kind, stopped.by, stopped.detail) == (EndKind.CANCELLED, "marie", "")
    late = end_of(pods, SIGHT, 1, {1: Left(143, is_over_time=True)}, "")
    assert late
    assert (late.kind, late.detail) == (EndKind.TIMEOUT, "")


def test_a_pod_that_was_deleted_is_a_lost_node_unless_its_job_was() -> None:
    pods = {0: make_pod(0, main=RUNNING)}
    lost = end_of(pods, SIGHT, 1, {}, "")
    assert lost
    assert lost.kind is EndKind.NODE_LOST
    assert "it is not started again; on node 1" in lost.detail
    removed = end_of(pods, Sight(), 1, {}, "")
    assert removed
    assert removed.kind is EndKind.CANCELLED
    pods[0] = make_pod(0, main=over(137))
    pods[0]["metadata"]["deletionTimestamp"] = ENDED
    going = end_of(pods, SIGHT, 0, {}, "")
    assert going
    assert going.kind is EndKind.NODE_LOST


def test_a_pod_whose_image_can_not_be_pulled_says_so_for_all() -> None:
    why = {"waiting": {"reason": "ErrImageNeverPull", "message": "is not present"}}
    end = end_of({0: make_pod(0, main=why), 1: make_pod(1, main=RUNNING)}, SIGHT, 0, {}, "")
    assert end
    assert end.kind is EndKind.NOT_STARTED
    assert end.detail == "could not pull the image: ErrImageNeverPull: is not present; on node 0"


def test_a_servers_version_says_whether_it_numbers_pods() -> None:
    assert [has_indexed_jobs(version) for version in ("1.20", "1.21+", "1.22", "1.23+", "2.0", "", "x")] == [
        *(False, False),
        *(True, True, True),
        *(True, True),
    ]
