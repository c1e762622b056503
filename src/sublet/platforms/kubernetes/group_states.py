"""The state of a session of several pods: which pods are its own, what it waits for, and which end counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import End, EndKind, Usage
from sublet.platforms.kubernetes.api import Object
from sublet.platforms.kubernetes.names import INDEX, STAGE
from sublet.platforms.kubernetes.states import (
    BY_OTHERS,
    OLDEST,
    Left,
    Sight,
    describe_deletion,
    describe_end,
    describe_wait,
    has_begun,
    runs,
)

NO_FAULT = (EndKind.CANCELLED, EndKind.TIMEOUT)  # ends that concern all nodes, without one to blame


def index_of(pod: Object) -> int | None:
    """Return a pod's number in its Job, from 0; None if it has none."""
    text = str((pod["metadata"].get("annotations") or {}).get(INDEX, ""))
    return int(text) if text.isdigit() else None


def choose_pods(pods: Iterable[Object], uids: Mapping[str, str] | None = None) -> dict[int, Object]:
    """Return the session's pods by number: those that were started, or before that the first of each number."""
    chosen: dict[int, Object] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", OLDEST))):
        number = index_of(pod)
        if number is None or number in chosen:
            continue
        is_own = uids.get(str(number)) == pod["metadata"]["uid"] if uids else not is_going(pod)
        if is_own:
            chosen[number] = pod
    return dict(sorted(chosen.items()))


def is_going(pod: Object) -> bool:
    """Whether a pod is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_waiting_for_others(pod: Object) -> bool:
    """Whether a pod has a node and an address, and can be told to start."""
    return runs(pod, STAGE) and bool((pod.get("status") or {}).get("podIP"))


def describe_gathering(pods: Mapping[int, Object], count: int) -> str:
    """Describe what a session waits for whose pods aren't all there."""
    waiting = {number: pod for number, pod in pods.items() if not is_waiting_for_others(pod)}
    there = f"{len(pods) - len(waiting)} of its {count} pods are there"
    if not waiting:
        return there if len(pods) < count else "its pods are being started"
    number, pod = next(iter(waiting.items()))
    return f"{there}; that of node {number}: {describe_wait(pod)}"


def find_failed(states: Mapping[int, JobState], count: int) -> int | None:
    """Return the node that failed first, or was lost; None if none has."""
    lost = [number for number in range(count) if number not in states]
    if lost:
        return lost[0]
    bad = [number for number, state in states.items() if state.state is State.ENDED and not _has_ended_well(state)]
    return min(bad, key=lambda number: (states[number].ended or datetime.now(UTC), number), default=None)


def _has_ended_well(state: JobState) -> bool:
    return state.end is not None and state.end.kind is EndKind.EXITED and state.end.code == 0


def describe_group_end(
    pods: Mapping[int, Object],
    states: Mapping[int, JobState],
    sight: Sight,
    failed: int | None,
    left: Mapping[int, Left],
    cancelled_by: str,
) -> JobState:
    """Return the end of the session: that of the node that failed first, else that of the first node."""
    number = failed or 0
    if number in pods:
        state = _describe_one(pods[number], states[number], sight, left.get(number, Left()), cancelled_by)
    else:
        end = End(EndKind.CANCELLED, by=cancelled_by) if cancelled_by else describe_deletion(sight)
        state = JobState(State.ENDED, end, ended=datetime.now(UTC))
    end = state.end or End(EndKind.UNKNOWN)
    if failed is not None and end.kind not in NO_FAULT:
        where = f"on node {failed}" + (f", whose output is among the results: nodes/{failed}.err" if failed else "")
        end = add_detail(end, where)
    return replace(state, end=replace(end, usage=_sum_usage(end.usage, left)))


def _describe_one(pod: Object, judged: JobState, sight: Sight, left: Left, cancelled_by: str) -> JobState:
    """Return how one pod ended; for a pod that never began, its status is enough."""
    if judged.state is State.ENDED and not has_begun(pod) and not cancelled_by:
        return judged
    state = describe_end(pod, left, cancelled_by)
    if state.end and state.end.kind in BY_OTHERS and is_going(pod):
        return replace(state, end=describe_deletion(sight))
    return state


def add_detail(end: End, words: str) -> End:
    """Add words to the detail of an end."""
    return replace(end, detail="; ".join(filter(None, (end.detail, words))))


def _sum_usage(own: Usage | None, left: Mapping[int, Left]) -> Usage | None:
    """Return the usage of all nodes: the sum of processor time, and the most memory of any."""
    used = [each.usage for each in left.values() if each.usage]
    if not used:
        return own
    wall = own.wall if own else 0.0
    return Usage(wall, round(sum(each.cpu for each in used), 3), max(each.peak_memory for each in used))
