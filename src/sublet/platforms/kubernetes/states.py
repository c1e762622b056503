"""A session's state, from its Job and its pod, and how it ended, in Kubernetes' own words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from signal import Signals
from typing import Any

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import End, EndKind, Usage
from sublet.platforms.kubernetes.api import Object
from sublet.platforms.kubernetes.names import MAIN, STAGE

ELSEWHERE = "someone at the cluster itself, not through Sublet"
SPENT = re.compile(r"(\d+)m([\d.]+)s")
AT_ONCE = frozenset({"InvalidImageName", "ErrImageNeverPull"})  # no later try can help
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", *AT_ONCE})
UNMADE = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
UNSTARTED = frozenset({"ContainerCannotRun", "StartError", "ContainerStatusUnknown"})
LOST = frozenset({"NodeLost", "NodeShutdown", "Terminated", "Shutdown"})
TAKEN = frozenset({"Evicted", "Preempting", "Preempted", "DeletionByTaintManager", "EvictionByEvictionAPI"})
DISK = re.compile(r"ephemeral[- ](local )?storage|emptyDir|disk", re.IGNORECASE)
OLDEST = "9999"
BY_OTHERS = (EndKind.SIGNALLED, EndKind.UNKNOWN)  # how a program ends whose pod is being deleted
FETCHING = "it has ended, and what it left is being fetched: {why}"
UNCOLLECTED = "what it left could not be fetched: {why}"
FORCED = 30.0  # seconds beyond the grace period after which an ignored stop is forced
DELETED = "its pod was deleted; it had been started, so it is not started again"


@dataclass(frozen=True, slots=True)
class Left:
    """What a session's pod recorded of its own end."""

    code: int | None = None  # of the program; None: there is no record
    usage: Usage | None = None
    is_over_time: bool = False
    killed: int = 0  # processes that the kernel killed for lack of memory
    unstarted: str = ""  # written by a kind if nothing was run
    detail: str = ""  # a kind's or the system's description of the end


@dataclass(frozen=True, slots=True)
class Sight:
    """A session as the cluster shows it."""

    job: Object | None = None
    pods: Sequence[Object] = ()
    warning: str = ""  # the cluster's message about its Job, while it has no pod


def choose_pod(sight: Sight, uid: str) -> Object | None:
    """Return the session's pod: the one in which it began, or before that the first."""
    if uid:
        return next((pod for pod in sight.pods if pod["metadata"]["uid"] == uid), None)
    return min(sight.pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", OLDEST)), default=None)


def read_time(text: str | None) -> datetime | None:
    """Read a time as Kubernetes writes it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC) if text else None


def find_container(pod: Mapping[str, Any], name: str) -> Object:
    """Return the status of one of a pod's containers; empty while there is none."""
    status = pod.get("status") or {}
    listed = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return next((container for container in listed if container["name"] == name), {})


def has_begun(pod: Mapping[str, Any]) -> bool:
    """Whether a pod's program was started."""
    state = find_container(pod, MAIN).get("state") or {}
    return "running" in state or "terminated" in state


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod's program can be connected to."""
    return bool(find_container(pod, MAIN).get("ready"))


def runs(pod: Mapping[str, Any], container: str) -> bool:
    """Whether one of a pod's containers runs now, so that programs can be run in it."""
    return "running" in (find_container(pod, container).get("state") or {}) and not pod["metadata"].get(
        "deletionTimestamp"
    )


def judge(pod: Object, now: datetime, patience: timedelta) -> JobState:
    """Return the state by a pod's status alone, before its results were looked at."""
    main = find_container(pod, MAIN).get("state") or {}
    if "terminated" in main or (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return describe_end(pod, Left(), "")
    if "running" in main:
        return JobState(State.RUNNING, started=read_time(main["running"].get("startedAt")))
    if end := _find_refusal(pod, now, patience):
        return JobState(State.ENDED, end, ended=now)
    return JobState(State.QUEUED, condition=describe_wait(pod))


def _list_waiting(pod: Object) -> list[tuple[str, str]]:
    """Return why a pod's containers haven't started: reason and message of each."""
    status = pod.get("status") or {}
    listed = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [container["state"]["waiting"] for container in listed if "waiting" in (container.get("state") or {})]
    return [
        (why.get("reason", ""), str(why.get("message") or "").strip())
        for why in waiting
        if why.get("reason") not in (None, "PodInitializing", "ContainerCreating")
    ]


def _find_refusal(pod: Object, now: datetime, patience: timedelta) -> End | None:
    """Return the end of a pod that will never start, once that was tried for long enough."""
    since = read_time((pod.get("status") or {}).get("startTime")) or now
    for reason, words in _list_waiting(pod):
        if reason in AT_ONCE or (reason in PULLING | UNMADE and now - since > patience):
            what = "could not pull the image" if reason in PULLING else "its container could not be made"
            return End(EndKind.NOT_STARTED, detail=f"{what}: {reason}: {words}".rstrip(": "))
    return None


def describe_wait(pod: Object) -> str:
    """Describe what a pod waits for."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', 'Pending')}: {condition.get('message', '')}".rstrip(": ")
    if waiting := _list_waiting(pod):
        return ": ".join(word for word in waiting[0] if word)
    if "running" in (find_container(pod, STAGE).get("state") or {}):
        return "its files are being brought to its pod"
    if not status.get("startTime"):
        return "waits for a node"
    return f"its pod is being made on {pod['spec'].get('nodeName', 'its node')}"


def describe_end(pod: Object, left: Left, cancelled_by: str) -> JobState:
    """Return how a session ended, by its pod's status and its results."""
    state = find_container(pod, MAIN).get("state") or {}
    over = state.get("terminated") or {}
    started = read_time(over.get("startedAt"))
    ended = read_time(over.get("finishedAt")) or _find_last_change(pod)
    if left.usage and started and ended:
        left = replace(left, usage=replace(left.usage, wall=(ended - started).total_seconds()))
    if cancelled_by:
        end = End(EndKind.CANCELLED, by=cancelled_by, detail="" if over else "it had not started", usage=left.usage)
    else:
        end = _find_end(pod, over, left)
    return JobState(State.ENDED, end, started, ended)


def _find_last_change(pod: Object) -> datetime | None:
    changes = [read_time(each.get("lastTransitionTime")) for each in (pod.get("status") or {}).get("conditions") or ()]
    return max((change for change in changes if change), default=None)


def _find_end(pod: Object, over: Mapping[str, Any], left: Left) -> End:
    status = pod.get("status") or {}
    reason, words = str(status.get("reason") or ""), str(status.get("message") or "")
    stage = (find_container(pod, STAGE).get("state") or {}).get("terminated") or {}
    if left.is_over_time or reason == "DeadlineExceeded":
        return End(EndKind.TIMEOUT, detail=words, usage=left.usage)
    if reason in TAKEN:
        kind = EndKind.DISK_FULL if DISK.search(words) else EndKind.PREEMPTED
        return End(kind, detail=f"{reason}: {words}".rstrip(": "), usage=left.usage)
    if reason in LOST:
        return End(EndKind.NODE_LOST, detail=f"{reason}: {words}".rstrip(": "), usage=left.usage)
    if stage.get("exitCode"):
        words = str(stage.get("message") or stage.get("reason") or "").strip()
        return End(EndKind.STAGING_FAILED, detail=f"its pod could not be laid out: {words}")
    if not over:
        return End(EndKind.UNKNOWN, detail=f"its pod is {status.get('phase')}: {reason} {words}".strip(": "))
    return _find_exit(over, left)


def _find_exit(over: Mapping[str, Any], left: Left) -> End:
    """Return the end of a program that was started, or was to be."""
    reason, words = str(over.get("reason") or ""), str(over.get("message") or "")
    code = int(over.get("exitCode") or 0) if left.code is None else left.code
    if left.unstarted:
        kind = EndKind.STAGING_FAILED if left.unstarted == "staging-failed" else EndKind.NOT_STARTED
        return End(kind, detail=left.detail, usage=left.usage)
    if reason in UNSTARTED:
        kind = EndKind.NODE_LOST if reason == "ContainerStatusUnknown" else EndKind.NOT_STARTED
        return End(kind, detail=f"{reason}: {words}".rstrip(": "), usage=left.usage)
    is_short = reason == "OOMKilled" or left.killed > 0  # the kubelet may have missed it, but the kernel counts
    if is_short and code:
        return End(EndKind.OUT_OF_MEMORY, code=code, detail=f"OOMKilled: {left.detail}".rstrip(": "), usage=left.usage)
    detail = left.detail
    if is_short:
        detail = "; ".join(part for part in (detail, "one of its processes was stopped for lack of memory") if part)
    if code - 128 in set(Signals):
        return End(EndKind.SIGNALLED, signal=code - 128, detail=detail, usage=left.usage)
    return End(EndKind.EXITED, code=code, detail=detail, usage=left.usage)


def describe_deletion(sight: Sight) -> End:
    """Return the end of a session whose pod was deleted: with its Job by someone, or when a node was drained."""
    if sight.job is None:
        return End(EndKind.CANCELLED, by=ELSEWHERE, detail="its Job was deleted")
    return End(EndKind.NODE_LOST, detail=DELETED)


def read_usage(times: str, peak: str) -> Usage:
    """Read the usage that the shell and the cgroup counted; the last line is that of the program."""
    lines = times.strip().splitlines()
    cpu = sum(60 * int(minutes) + float(seconds) for minutes, seconds in SPENT.findall(lines[-1])) if lines else 0.0
    return Usage(0.0, round(cpu, 3), int(peak) if peak.strip().isdigit() else 0)
