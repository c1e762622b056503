"""How sessions end on a real Kubernetes is told as it was, in the cluster's own words where it has any."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testbed.kubernetes.cluster import Cluster

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.kubernetes.names import name_of
from sublet.platforms.kubernetes.platform import Kubernetes
from tests.engines.asking import PATIENCE
from tests.engines.kubernetes_cluster import ROLE, Namespace, make_namespace

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
GREEDY = "x = bytearray(400 << 20); print(len(x))"
SMALL = 128 << 20


@pytest.fixture
async def platform(namespace: Namespace, tmp_path: Path) -> AsyncIterator[Kubernetes]:
    made = namespace.platform(patience="2s")
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def trial(platform: Kubernetes) -> AsyncIterator[ConformanceTrial]:
    made = ConformanceTrial(platform, PATIENCE)
    yield made
    await made.clean()


def with_shape(job: Job, shape: Shape) -> Job:
    return replace(job, amounts=Amounts(shape))


async def end_of(trial: ConformanceTrial, job: Job) -> JobState:
    return await trial.wait_for_end(await trial.platform.submit(job, trial.key()))


async def test_a_program_that_uses_too_much_memory_says_so_and_so_does_its_child(trial: ConformanceTrial) -> None:
    state = await end_of(trial, trial.job("python3", "-c", GREEDY))
    assert state.end is not None
    assert (state.end.kind, state.end.detail) == (EndKind.OUT_OF_MEMORY, "OOMKilled")
    child = await end_of(trial, trial.job("sh", "-c", f"python3 -c '{GREEDY}'; exit 5"))
    assert child.end is not None
    assert (child.end.kind, child.end.code) == (EndKind.OUT_OF_MEMORY, 5)
    survivor = await end_of(trial, trial.job("sh", "-c", f"python3 -c '{GREEDY}'; echo went on"))
    assert survivor.end is not None
    assert (survivor.end.kind, survivor.end.code) == (EndKind.EXITED, 0)
    assert survivor.end.detail == "one of its processes was stopped for lack of memory"
    assert await trial.platform.output(trial.keys[-1], "stdout", 0, 100) == b"went on\n"


async def test_a_signal_and_what_was_used_are_told(trial: ConformanceTrial) -> None:
    work = "import os; sum(range(5_000_000)); os.kill(os.getpid(), 10)"
    state = await end_of(trial, trial.job("python3", "-c", work))
    assert state.end is not None
    assert (state.end.kind, state.end.signal) == (EndKind.SIGNALLED, 10)
    assert state.end.usage is not None
    assert state.end.usage.cpu > 0
    assert state.end.usage.peak_memory > 1 << 20


async def test_what_the_quota_refuses_waits_with_its_words(trial: ConformanceTrial) -> None:
    job = await trial.platform.submit(with_shape(trial.job("true"), Shape(1, 900 << 30)), trial.key())

    async def is_refused() -> bool:
        return "exceeded quota" in (await trial.state(job)).condition

    await trial.until("the words of the quota", is_refused)
    assert (await trial.state(job)).state is State.QUEUED
    await trial.platform.cancel([job], "marie")
    state = await trial.wait_for_end(job)
    assert state.end is not None
    assert (state.end.kind, state.end.by, state.end.detail) == (EndKind.CANCELLED, "marie", "it had not started")


async def test_what_no_node_has_room_for_waits_with_the_schedulers_words(cluster: Cluster, tmp_path: Path) -> None:
    unbounded = make_namespace(cluster, tmp_path).platform()
    await unbounded.open(tmp_path / "home")
    trial = ConformanceTrial(unbounded, PATIENCE)
    try:
        job = await unbounded.submit(with_shape(trial.job("true"), Shape(64, SMALL)), trial.key())

        async def waits() -> bool:
            return "0/1 nodes are available: 1 Insufficient cpu" in (await trial.state(job)).condition

        await trial.until("the words of the scheduler", waits)
        assert (await trial.state(job)).state is State.QUEUED
    finally:
        await trial.clean()
        await unbounded.close()


async def test_an_image_that_is_not_there_is_told_in_the_kubelets_words(
    namespace: Namespace, tmp_path: Path, trial: ConformanceTrial
) -> None:
    job = trial.job("true")
    missing = replace(job, program=replace(job.program, image="localhost/nothing:1"))
    state = await end_of(trial, missing)
    assert state.end is not None
    assert state.end.kind is EndKind.NOT_STARTED
    assert "ErrImageNeverPull" in state.end.detail
    assert "localhost/nothing:1" in state.end.detail
    pulling = namespace.platform(patience="2s", image_pull="IfNotPresent")
    await pulling.open(tmp_path / "pulling")
    other = ConformanceTrial(pulling, PATIENCE)
    try:
        state = await end_of(other, missing)
        assert state.end is not None
        assert state.end.kind is EndKind.NOT_STARTED
        assert "could not pull the image" in state.end.detail
    finally:
        await other.clean()
        await pulling.close()


async def test_a_pod_that_is_deleted_is_lost_and_its_program_is_not_started_again(
    trial: ConformanceTrial, namespace: Namespace
) -> None:
    job = await trial.submit("sh", "-c", "echo ran; sleep 3600")

    async def has_printed() -> bytes:
        await trial.state(job)
        return await trial.platform.output(job, "stdout", 0, 100)

    await trial.until("what it prints", has_printed)
    words = ("-n", namespace.name, "delete", "pods", "-l", f"job-name={name_of(job)}", "--grace-period=1")
    namespace.cluster.kubectl(*words)
    state = await trial.wait_for_end(job)
    assert state.end is not None
    assert state.end.kind is EndKind.NODE_LOST
    assert not [name for name in namespace.list_left() if name.startswith("job")]


async def test_a_job_that_someone_deletes_with_kubectl_was_cancelled_elsewhere(
    trial: ConformanceTrial, namespace: Namespace
) -> None:
    job = await trial.submit("sleep", "3600")

    async def has_started() -> bool:
        return (await trial.state(job)).state is State.RUNNING

    await trial.until("its start", has_started)
    namespace.cluster.kubectl("-n", namespace.name, "delete", "job", name_of(job))
    state = await trial.wait_for_end(job)
    assert state.end is not None
    assert (state.end.kind, state.end.by[:22]) == (EndKind.CANCELLED, "someone at the cluster")


async def test_a_session_that_fills_its_disk_is_evicted_and_says_so(trial: ConformanceTrial) -> None:
    script = "dd if=/dev/zero of=big bs=1M count=40 2>/dev/null; sleep 3600"
    job = with_shape(trial.job("sh", "-c", script), Shape(1, SMALL, disk=4 << 20))
    state = await end_of(trial, job)
    assert state.end is not None
    assert state.end.kind is EndKind.DISK_FULL
    assert "Evicted" in state.end.detail


async def test_someone_without_rights_gets_the_servers_own_words(namespace: Namespace, tmp_path: Path) -> None:
    bob = namespace.platform("bob")
    await bob.open(tmp_path)
    try:
        with pytest.raises(
            PlatformRefused, match=r'jobs\.batch is forbidden: User "bob" cannot create resource "jobs"'
        ):
            await bob.survey()
        trial = ConformanceTrial(bob, PATIENCE)
        with pytest.raises(PlatformRefused, match='User "bob" cannot get resource "jobs"'):
            await trial.submit("true")
    finally:
        await bob.close()


@pytest.mark.parametrize(("resource", "verb"), [("jobs", "list"), ("secrets", "delete"), ("pods/exec", "get")])
async def test_one_right_that_is_missing_is_told_before_anything_is_offered(
    cluster: Cluster, tmp_path: Path, resource: str, verb: str
) -> None:
    namespace = make_namespace(cluster, tmp_path)
    rules = [
        {**rule, "verbs": [each for each in rule["verbs"] if each != verb or resource not in rule["resources"]]}
        for rule in ROLE["rules"]
    ]
    cluster.apply({**ROLE, "metadata": {**ROLE["metadata"], "namespace": namespace.name}, "rules": rules})
    platform = namespace.platform()
    await platform.open(tmp_path / "home")
    try:
        with pytest.raises(PlatformRefused, match=f'User "alice" cannot {verb} resource "{resource}"') as refused:
            await platform.survey()
        assert "kubernetes-role.yaml" in refused.value.advice
    finally:
        await platform.close()


LIMITS: tuple[list[dict[str, Any]], ...] = (
    [{"type": "Container", "min": {"cpu": "500m", "memory": "64Mi"}, "max": {"cpu": "1", "memory": "512Mi"}}],
    [
        {"type": "Container", "maxLimitRequestRatio": {"cpu": "2", "memory": "2"}},
        {"type": "Pod", "max": {"cpu": "1500m", "memory": "1Gi"}, "min": {"memory": "256Mi"}},
    ],
    [  # GPUs, of which its node has none: no container may be given any by default
        {"type": "Container", "max": {"cpu": "1", "memory": "512Mi", "example.com/gpu": "1"}},
        {"type": "Pod", "max": {"example.com/tpu": "1", "ephemeral-storage": "1Gi"}},
    ],
)


@pytest.mark.parametrize("limits", LIMITS, ids=["containers", "pods", "gpus"])
async def test_a_session_keeps_to_the_limits_of_a_namespace(
    namespace: Namespace, trial: ConformanceTrial, limits: list[dict[str, Any]]
) -> None:
    about = {"name": "most", "namespace": namespace.name}
    namespace.cluster.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": about, "spec": {"limits": limits}})
    (node,) = (await trial.platform.survey()).nodes
    assert (node.cores, node.memory <= 1 << 30) == (1, True)
    state = await end_of(trial, trial.job("true"))
    assert state.end is not None
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0)
