"""A namespace's LimitRanges bound what is offered there, and all containers of a pod keep to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sublet.booking.model.offer import Node
from sublet.booking.model.request import Compute, Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Shape
from sublet.platforms.kubernetes.amounts import parse_quantity
from sublet.platforms.kubernetes.bounds import NO_BOUNDS, read_bounds
from sublet.platforms.kubernetes.choosing import NodeChoice
from sublet.platforms.kubernetes.survey import ClusterView, limit_nodes, read_quota

GIB = 1 << 30


def limit(kind: str, **bounds: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"limits": [{"type": kind, **bounds}]}}


def test_without_limits_helpers_take_little_and_the_program_what_was_offered() -> None:
    amounts = {"cpu": "2", "memory": "1024"}
    assert NO_BOUNDS.size_main(amounts) == {"requests": amounts, "limits": amounts}
    helper = NO_BOUNDS.size_helper()
    assert helper["requests"] == {"cpu": "0", "memory": str(16 << 20)}
    assert helper["limits"] == {"cpu": "200m", "memory": str(128 << 20)}
    assert NO_BOUNDS.find_most("cpu") is None


def test_the_least_of_a_container_is_that_of_every_container() -> None:
    bounds = read_bounds([limit("Container", min={"cpu": "500m", "memory": "256Mi"})])
    assert bounds.size_helper() == {
        "requests": {"cpu": "500m", "memory": str(256 << 20)},
        "limits": {"cpu": "500m", "memory": str(256 << 20)},
    }
    assert bounds.size_main({"cpu": "1", "memory": str(64 << 20)})["limits"] == {"cpu": "1", "memory": str(256 << 20)}


def test_where_limits_must_be_near_requests_helpers_request_all_that_they_may_have() -> None:
    helper = read_bounds([limit("Container", maxLimitRequestRatio={"cpu": "4", "memory": "2"})]).size_helper()
    assert helper["requests"] == helper["limits"]


@pytest.mark.parametrize("kind", ["Container", "Pod"])
def test_no_more_is_offered_than_one_container_and_one_pod_may_have(kind: str) -> None:
    bounds = read_bounds([limit(kind, max={"cpu": "4", "memory": "8Gi"})])
    view = ClusterView(datetime.now(UTC), "alice", (Node("c1", 64, 256 * GIB),), sees_nodes=True, bounds=bounds)
    (node,) = limit_nodes(view, None)
    beside = 0 if kind == "Container" else parse_quantity("128Mi")
    assert node.cores == (4 if kind == "Container" else 3)
    assert node.memory == Decimal(8 * GIB) - beside


def test_the_strictest_of_several_limits_counts_and_those_of_claims_do_not() -> None:
    several = [limit("Container", max={"cpu": "8"}), limit("Container", max={"cpu": "2"})]
    bounds = read_bounds([*several, limit("PersistentVolumeClaim", max={"storage": "1Gi"}, min={"storage": "1Gi"})])
    assert bounds.find_most("cpu") == 2
    assert bounds.find_most("storage") is None


def test_a_quota_has_room_for_the_helper_as_large_as_it_must_be() -> None:
    hard = {"requests.cpu": "4", "requests.memory": "2Gi"}
    bounds = read_bounds([limit("Container", min={"cpu": "500m", "memory": "256Mi"})])
    room = read_quota([{"spec": {"hard": hard}}], "gpu", bounds)
    assert room
    assert (room.most.cores, room.most.memory) == (3, (2 * GIB) - (256 << 20))


@pytest.mark.parametrize("kind", ["Container", "Pod"])
def test_gpus_and_licences_are_bounded_too_and_nobody_gets_those_that_were_not_asked_for(kind: str) -> None:
    bounds = read_bounds([limit(kind, max={"nvidia.com/gpu": "2", "example.com/matlab": "1"})])
    view = ClusterView(
        datetime.now(UTC),
        "alice",
        (Node("c1", 64, 256 * GIB, 8),),
        sees_nodes=True,
        bounds=bounds,
        gpu="nvidia.com/gpu",
        counts={"c1": {"example.com/matlab": 5}},
    )
    assert [node.gpus for node in limit_nodes(view, None)] == [2]
    assert [node.gpus for node in limit_nodes(replace(view, sees_nodes=False), Shape(8, GIB, 4))] == [2]
    for sized in (bounds.size_helper(), bounds.size_main({"cpu": "1"})):  # or the namespace's default would be added
        assert sized["limits"].items() >= {"nvidia.com/gpu": "0", "example.com/matlab": "0"}.items()
        assert sized["requests"].items() >= {"nvidia.com/gpu": "0", "example.com/matlab": "0"}.items()
    asked = Request(None, Compute(), scheduler=SchedulerOptions(licenses="matlab:2"))
    choice = NodeChoice("lab", licenses={"matlab": "example.com/matlab"})
    assert [reason.nearest for reason in choice.find_missing(view, asked)] == ["matlab:1"]


def test_disk_that_was_not_asked_for_is_limited_to_the_most_and_not_reserved() -> None:
    bounds = read_bounds([limit("Pod", max={"ephemeral-storage": "1Gi"})])
    main, helper = bounds.size_main({"cpu": "1"}), bounds.size_helper()
    assert helper["limits"]["ephemeral-storage"] == str(64 << 20)
    assert main["limits"]["ephemeral-storage"] == str(GIB - (64 << 20))
    assert main["requests"]["ephemeral-storage"] == helper["requests"]["ephemeral-storage"] == "0"
    defaults = read_bounds([limit("Container", default={"ephemeral-storage": "1Gi"})])
    assert "ephemeral-storage" not in {*defaults.size_main({})["limits"], *defaults.size_helper()["limits"]}
