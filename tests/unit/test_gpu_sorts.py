"""Offers state the sorts of GPU that a session may be given, with the version of their driver where that is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.booking.model.gpu_sorts import GpuSort, describe_gpus, find_driver, find_labelled_driver, sort_gpus
from sublet.booking.model.offer import Answer, Node, Offer
from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Shape
from sublet.booking.store.rows import OFFER
from sublet.kernel.db.sql import dump
from sublet.platforms.batch.fitting import list_gpus, state_gpus
from sublet.platforms.kubernetes.choosing import NodeChoice
from sublet.platforms.kubernetes.survey import ClusterView
from sublet.platforms.slurm.readers import read_nodes

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 1 << 30
LABEL = "nvidia.com/gpu.product"
FULL = "nvidia.com/cuda.driver-version.full"
NODES = """c1|gpu|8|1:8:1|8000|gpu:a100:2|idle|500|ib,nvidia-driver-550.54.15
c2|gpu|8|1:8:1|8000|gpu:v100:2|idle|500|driver535
c3|gpu|8|1:8:1|8000|gpu:4|idle|500|(null)
c4|gpu|8|1:8:1|8000|(null)|idle|500|driver999
"""


def ask(gpus: int, **asked: str) -> Request:
    compute = Compute(cores=Range(1, 1), memory=Range(GIB, GIB), gpus=Range(gpus, gpus))
    scheduler = SchedulerOptions(**asked)
    return Request(Executable("command", {}), compute, duration=timedelta(hours=1), scheduler=scheduler)


OFFERED = Offer("far", "exec", NOW, NOW, timedelta(hours=1), (), Shape(1, GIB, 1))


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (["ib", "nvidia-driver-550.54.15"], "550.54.15"),
        (["driver535"], "535"),
        (["CUSTOM_NVIDIA_DRIVER_550_54"], "550.54"),
        (["nvidia_driver_v525.60", "driver525"], "525.60"),
        (["CUSTOM_SSD", "cuda12"], ""),
        ([], ""),
    ],
)
def test_the_version_of_a_driver_is_read_out_of_a_feature_that_names_it(names: list[str], version: str) -> None:
    assert find_driver(names) == version


def test_the_version_of_a_driver_is_read_out_of_the_labels_of_gpu_feature_discovery() -> None:
    major = {"nvidia.com/cuda.driver.major": "550", "nvidia.com/cuda.driver.minor": "54"}
    assert find_labelled_driver(major) == "550.54"
    assert find_labelled_driver({**major, "nvidia.com/cuda.driver.rev": "15"}) == "550.54.15"
    assert find_labelled_driver({**major, FULL: "550.54.14"}) == "550.54.14"
    assert find_labelled_driver({"amd.com/gpu.driver-version": "6.7.0"}) == "6.7.0"
    assert find_labelled_driver({"example.com/gpu-driver": "535"}) == "535"
    assert find_labelled_driver({LABEL: "A100", "disk": "ssd"}) == ""


def test_sorts_are_told_in_words_each_once_and_nothing_of_those_that_nobody_knows() -> None:
    sorts = sort_gpus([GpuSort("v100"), GpuSort("a100", "550"), GpuSort("v100"), GpuSort()])
    assert describe_gpus(sorts) == "a100, driver 550 or v100"


@pytest.mark.parametrize(
    ("gpus", "asked", "words"),
    [
        (1, {}, "a100, driver 550.54.15 or v100, driver 535"),
        (1, {"gpu_type": "v100"}, "v100, driver 535"),
        (1, {"constraint": "ib"}, "a100, driver 550.54.15"),
        (3, {}, ""),
    ],
)
def test_slurm_states_the_gpus_of_the_nodes_that_could_run_it(gpus: int, asked: dict[str, str], words: str) -> None:
    assert describe_gpus(list_gpus(read_nodes(NODES), ask(gpus, **asked))) == words


def test_who_asks_for_no_gpu_is_told_of_none() -> None:
    nodes = read_nodes(NODES)
    assert state_gpus(Answer((OFFERED,)), ask(0), lambda offer: nodes).offers[0].gpu_sorts == ()
    assert len(state_gpus(Answer((OFFERED,)), ask(1), lambda offer: nodes).offers[0].gpu_sorts) == 2


def test_kubernetes_states_the_gpus_of_the_nodes_that_a_pod_may_run_on() -> None:
    nodes = (Node("n1", 4, 8 * GIB, 1), Node("n2", 4, 8 * GIB, 1), Node("n3", 4, 8 * GIB))
    labels = {"n1": {LABEL: "A100", FULL: "550.54.15"}, "n2": {LABEL: "V100"}, "n3": {FULL: "1"}}
    view = ClusterView(NOW, "alice", nodes, sees_nodes=True, labels=labels)
    choice = NodeChoice("lab", LABEL)
    stated = choice.state_gpus(view, ask(1), Answer((OFFERED,))).offers[0].gpu_sorts
    assert describe_gpus(stated) == "A100, driver 550.54.15 or V100"
    (alone,) = choice.state_gpus(view, ask(1, gpu_type="V100"), Answer((OFFERED,))).offers
    assert alone.gpu_sorts == (GpuSort("V100"),)
    hidden = ClusterView(NOW, "alice")
    assert choice.state_gpus(hidden, ask(1), Answer((OFFERED,))).offers == (OFFERED,)


def test_an_offer_is_stored_with_them() -> None:
    offer = replace(OFFERED, gpu_sorts=(GpuSort("a100", "550"),))
    assert OFFER.validate_json(dump(OFFER, offer)) == offer
