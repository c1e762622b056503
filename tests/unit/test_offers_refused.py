"""What a NO says: each reason at once, and what would be possible instead."""

import pytest

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.request import (
    GIB,
    Compute,
    Range,
    Request,
    Storage,
    Window,
)
from tests.unit.test_offers import DAY, HOUR, MINUTE, NODES, NOW, asking, busy, calendar, find, the_reason


def test_a_machine_busy_for_ten_minutes_says_no_to_five_and_when_it_is_free() -> None:
    soon = asking(windows=(Window(NOW, NOW + 5 * MINUTE),))
    reason = the_reason(find(soon, calendar(busy(NOW, NOW + 10 * MINUTE))))
    assert (reason.kind, reason.field) == ("urn:resource-limit", "schedule.requested.start")
    assert reason.nearest == "2026-11-15T20:10:00Z"
    assert reason.nearest in reason.message
    assert "in 10 min" in reason.message


def test_a_window_in_the_past_is_a_no_that_names_the_next_free_time() -> None:
    reason = the_reason(find(asking(windows=(Window(NOW - 3 * HOUR, NOW - HOUR),))))
    assert reason.kind == "urn:invalid-value"
    assert reason.nearest == "2026-11-15T20:01:00Z"


def test_a_window_beyond_the_horizon_is_a_no_that_names_the_horizon() -> None:
    reason = the_reason(find(asking(windows=(Window(NOW + 800 * DAY, NOW + 801 * DAY),))))
    assert reason.limit == "366 d"


@pytest.mark.parametrize(
    ("compute", "field", "limit"),
    [
        ({"cores": Range(64, 128)}, "compute.cores.min", "8"),
        ({"memory": Range(100 * GIB, 100 * GIB)}, "compute.memory.min", "64GiB"),
        ({"gpus": Range(8, 8)}, "compute.gpus.min", "4"),
        ({"cores": Range(8, 8), "memory": Range(32 * GIB, 32 * GIB)}, "compute.memory.min", "16GiB"),
        ({"cores": Range(4, 4), "gpus": Range(1, 1)}, "compute.cores.min", "2"),
        ({"nodes": Range(4, 4)}, "compute.nodes.min", "3"),
        ({"nodes": Range(3, 3), "cores": Range(4, 4)}, "compute.nodes.min", "2"),
    ],
)
def test_a_shape_that_no_node_has_is_a_no_with_the_largest_that_one_has(
    compute: dict[str, Range], field: str, limit: str
) -> None:
    reason = the_reason(find(asking(compute=Compute(**compute)), calendar(nodes=NODES)))
    assert (reason.kind, reason.field, reason.limit, reason.nearest) == ("urn:resource-limit", field, limit, limit)
    assert limit in reason.message


def test_every_reason_is_given_at_once() -> None:
    request = asking(
        compute=Compute(cores=Range(64, 64), memory=Range(999 * GIB, 999 * GIB)),
        storage=(Storage("scratch", Range(500 * GIB, 500 * GIB)),),
        duration=10 * HOUR,
    )
    answer = find(request, longest=2 * HOUR)
    assert {reason.field for reason in answer.reasons} == {
        "compute.cores.min",
        "compute.memory.min",
        "storage[0].size.min",
        "schedule.requested.duration",
    }


def test_a_platform_without_nodes_or_storage_says_so() -> None:
    assert the_reason(find(asking(), Calendar([]))).field == "compute"
    needs_room = asking(storage=(Storage("scratch", Range(GIB, GIB)),))
    assert the_reason(find(needs_room, Calendar(NODES))).kind == "urn:not-supported"


def test_unknown_kinds_are_a_no() -> None:
    for request, field in (
        (asking(compute=Compute(kind="quantum-compute")), "compute.kind"),
        (asking(storage=(Storage("s", Range(1, 1), kind="tape"),)), "storage[0].kind"),
    ):
        reason = the_reason(find(request))
        assert (reason.kind, reason.field) == ("urn:unknown-kind", field)


def test_nothing_to_run_is_a_no() -> None:
    assert the_reason(find(Request(None))).kind == "urn:executable-required"
    assert the_reason(find(asking(), ways=[])).kind == "urn:not-supported"
