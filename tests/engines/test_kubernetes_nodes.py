"""GPUs, their types, features and licences of a real node: the real scheduler gives them out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from testbed.kubernetes.cluster import Cluster

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.model.job import Job, State
from sublet.booking.model.offer import Answer
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.kubernetes.platform import Kubernetes
from tests.contract.services import ask, serving
from tests.engines.asking import PATIENCE, request_for
from tests.engines.kubernetes_cluster import Namespace, make_namespace

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
GPU, LABEL, DRIVER = "example.com/gpu", "example.com/gpu-type", "example.com/gpu.driver-version"
SMALL = 128 << 20
SETTINGS = {"gpu_resource": GPU, "gpu_label": LABEL, "licenses": {"matlab": "example.com/matlab"}}


@pytest.fixture(scope="module")
def seen(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Namespace:
    """A namespace for dora, who sees a node with two GPUs of a type, three licences and a label."""
    cluster.advertise(gpu=2, matlab=3)
    cluster.kubectl("label", "--overwrite", "node", "node1", f"{LABEL}=A100", "disk=ssd", f"{DRIVER}=550.54")
    return make_namespace(cluster, tmp_path_factory.mktemp("nodes"))


@pytest.fixture
async def platform(seen: Namespace, tmp_path: Path) -> AsyncIterator[Kubernetes]:
    made = seen.platform("dora", **SETTINGS)
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def trial(platform: Kubernetes) -> AsyncIterator[ConformanceTrial]:
    made = ConformanceTrial(platform, PATIENCE)
    yield made
    await made.clean()


def with_gpus(job: Job, gpus: int, **asked: str) -> Job:
    return replace(job, amounts=Amounts(Shape(1, SMALL, gpus)), scheduler=SchedulerOptions(**asked))


async def answer(platform: Kubernetes, gpus: int = 0, **asked: str) -> Answer:
    request = request_for(platform.name)
    compute = replace(request.compute, gpus=replace(request.compute.cores, min=gpus, max=gpus))
    wanted = replace(request, compute=compute, scheduler=SchedulerOptions(**asked))
    return await platform.offers(wanted, ["exec"], datetime.now(UTC))


async def test_gpus_of_a_type_are_surveyed_offered_and_given_out_by_the_scheduler(trial: ConformanceTrial) -> None:
    platform = trial.platform
    assert isinstance(platform, Kubernetes)
    survey = await platform.survey()
    assert [node.gpus for node in survey.nodes] == [2]
    assert "types of GPU: A100" in survey.notes
    first = await platform.submit(
        with_gpus(trial.job("sh", "-c", "echo $SUBLET_GPUS; sleep 3600"), 2, gpu_type="A100"), trial.key()
    )

    async def runs() -> bool:
        return (await trial.state(first)).state is State.RUNNING

    await trial.until("its start", runs)
    with_both = (await answer(platform, 2, gpu_type="A100")).offers[0].start
    assert with_both > datetime.now(UTC), "both are taken"
    assert (await answer(platform)).offers[0].start < with_both, "what needs none can start earlier"
    second = await platform.submit(with_gpus(trial.job("true"), 1, gpu_type="A100"), trial.key())

    async def waits() -> bool:
        return f"Insufficient {GPU}" in (await trial.state(second)).condition

    await trial.until("the words of the scheduler", waits)
    await platform.cancel([first], "marie")
    await trial.wait_for_end(first)
    assert await platform.output(first, "stdout", 0, 100) == b"2\n"
    end = (await trial.wait_for_end(second)).end
    assert end is not None
    assert (end.kind, end.code) == (EndKind.EXITED, 0), "it started when the others were given back"


async def test_what_no_node_has_is_refused_with_what_there_is(platform: Kubernetes, tmp_path: Path) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "nodes there have example.com/gpu-type: A100": {"gpus": 1, "gpu_type": "H100"},
        "no node there has a label tape": {"constraint": "disk=ssd&tape"},
        "at most 3 licenses of matlab on a node; 4 were asked for": {"licenses": "matlab:4"},
        "it counts: matlab": {"licenses": "stata"},
        "nodes of up to 2 GPUs each": {"gpus": 3},
    }
    for words, asked in wrong.items():
        refused = await answer(platform, **asked)
        assert not refused.offers
        assert words in refused.reasons[0].message
    for asked in ({"constraint": "disk=ssd"}, {"licenses": "matlab:3"}, {"gpus": 2, "gpu_type": "A100"}):
        assert (await answer(platform, **asked)).offers


async def test_features_and_licences_are_asked_of_the_scheduler_which_counts_them(trial: ConformanceTrial) -> None:
    wanted = with_gpus(trial.job("sleep", "3600"), 0, constraint="disk=ssd", licenses="matlab:2")
    first = await trial.platform.submit(wanted, trial.key())

    async def runs() -> bool:
        return (await trial.state(first)).state is State.RUNNING

    await trial.until("its start", runs)
    second = await trial.platform.submit(with_gpus(trial.job("true"), 0, licenses="matlab:2"), trial.key())
    other = await trial.platform.submit(with_gpus(trial.job("true"), 0, constraint="tape"), trial.key())
    words = {second: "Insufficient example.com/matlab", other: "didn't match"}
    for id, word in words.items():

        async def waits(id: str = id, word: str = word) -> bool:
            return word in (await trial.state(id)).condition

        await trial.until(word, waits)
    await trial.platform.cancel([first, second, other], "marie")


async def test_a_selector_of_the_settings_leaves_other_nodes_out(seen: Namespace, tmp_path: Path) -> None:
    for number, (selector, count) in enumerate((({"disk": "ssd"}, 1), ({"disk": "tape"}, 0))):
        platform = seen.platform("dora", **SETTINGS, node_selector=selector)
        await platform.open(tmp_path / str(number))
        try:
            assert len((await answer(platform)).offers) == count
        finally:
            await platform.close()


async def test_an_offer_states_what_was_asked_of_its_nodes(seen: Namespace, tmp_path: Path) -> None:
    lab = {"kind": "kubernetes", **seen.settings("dora", **SETTINGS)}
    async with serving(tmp_path, platforms={"lab": lab}) as service:
        wanted = {"gpus": 1, "gpu_type": "A100", "constraint": "disk=ssd", "licenses": "matlab:1", "disk": "1GiB"}
        offerset = await ask(service, time="2m", memory="128MiB", **wanted)
        (offered,) = offerset.offers
        stated = offered.offer.scheduler
        assert (stated.gpu_type, stated.constraint, stated.licenses) == ("A100", "disk=ssd", "matlab:1")
        assert offered.offer.gpu_sorts == (GpuSort("A100", "550.54"),)
        assert (offered.offer.shape.gpus, offered.offer.shape.disk) == (1, 1 << 30)


async def test_several_nodes_are_a_no_that_names_the_version_of_a_server_without_numbered_pods(
    trial: ConformanceTrial,
) -> None:
    request = request_for(trial.platform.name, nodes=2)
    assert request.executable
    wanted = replace(request, executable=replace(request.executable, fields={"each_node": True}))
    (reason,) = (await trial.platform.offers(wanted, ["exec"], datetime.now(UTC))).reasons
    assert "it is Kubernetes 1.20, and several need 1.22" in reason.message
    job = trial.job("true")
    program, amounts = replace(job.program, each_node=True), replace(job.amounts, nodes=2)
    with pytest.raises(PlatformRefused, match="gives the pods of a Job no numbers"):
        await trial.platform.submit(replace(job, program=program, amounts=amounts), trial.key())

    async def is_gone() -> bool:
        return not await trial.platform.list_left()

    await trial.until("the end of what it made", is_gone)
