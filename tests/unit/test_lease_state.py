"""How leases and nodes are told to be, from what was recorded and what their slots said last."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.annexes.model.annex import Details, Lease, Pilot
from sublet.annexes.model.lease_state import JobCounts, LeaseState, NodeState, Slots, nodes_of, state_of
from sublet.annexes.pilots.occupancy import read_jobs, read_occupancy
from sublet.booking.model.offer import Offer, Predicted
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.model.shape import Shape

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LEASE = Lease("l", "a", 1, Details("cluster", nodes=2), NOW)
PILOT = Pilot("l", 0, NOW - 10 * MINUTE, "c1", seen=NOW)
SLOTS = Slots("l", 0, "c1", 4, 3, 2, 8 << 30, 0, NOW - SECOND, 5 * SECOND)
OFFER = Offer("cluster", "htcondor", NOW, NOW, MINUTE, (), Shape(1, 0), terms=Predicted(NOW, NOW, NOW))
SESSION = Session("s", "o", "me", "example#1", "pilot", Phase.RUNNING, OFFER, NOW, NOW, NOW)
UP = NodeState(0, "c1", "up")


@pytest.mark.parametrize(
    ("pilot", "slots", "state", "why"),
    [
        (PILOT, SLOTS, "up", ""),
        (PILOT, replace(SLOTS, heard=NOW - 14 * SECOND), "up", ""),
        (PILOT, replace(SLOTS, heard=NOW - 16 * SECOND), "dead", "it has not reported for 16 s"),
        (PILOT, replace(SLOTS, interval=SECOND, heard=NOW - 9 * SECOND), "dead", "it has not reported for 9 s"),
        (PILOT, None, "dead", "its slots are not seen any more"),
        (replace(PILOT, claimed=NOW - SECOND), None, "starting", "its slots have not been seen yet"),
        (replace(PILOT, ended=NOW, why="idle"), SLOTS, "ended", "idle"),
    ],
)
def test_a_node_is_what_was_heard_of_it(pilot: Pilot, slots: Slots | None, state: str, why: str) -> None:
    [node] = nodes_of([pilot], [slots] if slots else [], NOW)
    assert (node.state, node.why) == (state, why)
    assert node.busy == (3 if state == "up" else 0)


@pytest.mark.parametrize(
    ("session", "nodes", "state"),
    [
        (None, (), "asked"),
        (replace(SESSION, phase=Phase.PREPARING), (), "queued"),
        (replace(SESSION, phase=Phase.PREPARING), (UP,), "up"),
        (SESSION, (), "starting"),
        (SESSION, (replace(UP, state="starting"), replace(UP, state="dead")), "starting"),
        (SESSION, (UP, replace(UP, state="dead")), "up"),
        (SESSION, (replace(UP, state="ended"), replace(UP, state="dead")), "dead"),
        (replace(SESSION, cancel_by="me"), (UP,), "ending"),
        (replace(SESSION, phase=Phase.RELEASING), (UP,), "ending"),
        (replace(SESSION, phase=Phase.COMPLETED), (), "ending"),
    ],
)
def test_a_lease_is_where_its_session_and_its_nodes_are(
    session: Session | None, nodes: tuple[NodeState, ...], state: str
) -> None:
    assert state_of(LEASE, session, nodes)[0] == state
    assert state_of(replace(LEASE, ended=NOW, why="over"), session, nodes) == ("ended", "over")


def test_a_start_is_expected_while_it_waits_only() -> None:
    waits = LeaseState(LEASE, "queued", "", SESSION)
    assert waits.expected == OFFER.terms
    assert replace(waits, state="up").expected is None


def test_the_slots_of_a_node_are_put_together() -> None:
    whole = {
        "SubletLease": "l",
        "SubletNode": 1,
        "Machine": "c2",
        "SlotType": "Partitionable",
        "State": "Unclaimed",
        "Cpus": 1,
        "TotalSlotCpus": 4,
        "TotalSlotMemory": 2048,
        "LastHeardFrom": 1000,
        "UpdateInterval": 1,
    }
    taken = {**whole, "SlotType": "Dynamic", "State": "Claimed", "Cpus": 2, "TotalSlotCpus": 2, "LastHeardFrom": 1003}
    other = {**taken, "Cpus": 1, "TotalSlotCpus": 1}
    [found] = read_occupancy([taken, whole, other])
    assert found == Slots("l", 1, "c2", 4, 3, 2, 2048 << 20, 0, datetime.fromtimestamp(1003, UTC), timedelta(seconds=1))
    assert read_occupancy([]) == []


def test_jobs_are_counted_by_the_annex_that_they_name() -> None:
    states = [1, 1, 2, 5, 3, 4, 6]
    ads = [{"SubletTarget": "a", "JobStatus": state} for state in states] + [{"SubletTarget": "b", "JobStatus": 1}]
    assert read_jobs(ads) == {"a": JobCounts(idle=2, running=2, held=1), "b": JobCounts(idle=1)}


def test_slots_of_equal_size_are_counted_and_a_node_that_is_drained_says_so() -> None:
    ads = [
        {"SubletLease": "l", "SubletNode": 0, "SlotType": "Static", "State": state, "Cpus": 2, "TotalSlotCpus": 2}
        for state in ("Claimed", "Unclaimed", "Unclaimed")
    ]
    [slots] = read_occupancy(ads)
    assert (slots.slots, slots.cores, slots.busy, slots.running) == (3, 6, 2, 1)
    pilot = Pilot("l", 0, NOW, "c1", NOW, facts={"draining": "node"})
    [node] = nodes_of([pilot], [replace(SLOTS, slots=3)], NOW)
    assert (node.state, node.slots, node.draining) == ("up", 3, True)
