"""Amounts are one value: a request asks for them, an offer gives them, a lease writes them, a job is told of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sublet.annexes.model.annex import Details
from sublet.booking.documents.amounts import write_amounts
from sublet.booking.documents.request import read_request
from sublet.booking.model.offer import Node, Offer
from sublet.booking.model.request import Compute, Range, Request
from sublet.booking.model.shape import SIZES, Amounts, Shape, TotalAmounts, is_enough, sizes_of
from sublet.platforms.told import tell_amounts
from sublet.systems.model.wish import wish_of

GIB, HOUR, NOW = 1 << 30, timedelta(hours=1), datetime(2026, 11, 17, 9, tzinfo=UTC)
SOME = Amounts(Shape(4, 3 * GIB // 2, 1), 3, 2 * HOUR)


def test_a_request_for_exactly_some_amounts_can_do_with_these_and_no_less() -> None:
    request = Request(None, Compute().exactly(SOME), duration=SOME.time)
    assert request.least == SOME
    assert request.compute.least == request.compute.most == SOME.shape
    assert Request(None, replace(Compute(), cores=Range(2, 8))).least.shape.cores == 2


def test_an_offer_gives_its_named_nodes_or_as_many_as_its_platform_chooses() -> None:
    chosen = Offer("far", "sh", NOW, NOW, 2 * HOUR, (), SOME.shape, count=3)
    assert chosen.amounts == replace(chosen, nodes=("a", "b", "c"), count=1).amounts == SOME
    assert replace(chosen, parts=2).amounts.total == TotalAmounts(24, 9 * GIB, 6, 6, 2 * HOUR)


def test_what_a_lease_writes_is_read_as_the_same_amounts() -> None:
    details = Details(nodes=3, cores=4, memory=3 * GIB // 2, gpus=1, lifetime=2 * HOUR)
    assert details.amounts == SOME
    document = {
        "executable": {"kind": "command", "command": ["true"]},
        "compute": {"kind": "node-compute-resource", **write_amounts(details.amounts)},
        "schedule": {"requested": {"duration": "PT2H"}},
    }
    assert read_request(document, NOW).least == SOME


def test_a_system_is_asked_for_what_the_request_needs_least() -> None:
    wish = wish_of(Request(None, Compute().exactly(SOME), duration=SOME.time))
    assert {name: getattr(wish, name) for name in SIZES} == {"nodes": 3, **sizes_of(SOME.shape)}
    assert wish.time == SOME.time


def test_a_program_is_told_what_it_has_on_each_node_and_starts_threads_on_one_alone() -> None:
    told = tell_amounts(SOME)
    assert {name: told[f"SUBLET_{name.upper()}"] for name in SIZES} == {
        "nodes": "3",
        "cores": "4",
        "memory": str(3 * GIB // 2),
        "gpus": "1",
        "disk": "0",
    }
    assert (told["OMP_NUM_THREADS"], tell_amounts(replace(SOME, nodes=1))["OMP_NUM_THREADS"]) == ("1", "4")


def test_what_has_less_of_one_thing_is_not_enough_however_much_of_the_others_it_has() -> None:
    assert is_enough(Node("n", 4, 2 * GIB, 1), SOME.shape)
    for less in (Shape(3, 9 * GIB, 9), Shape(9, GIB, 9), Shape(9, 9 * GIB, 0)):
        assert not is_enough(less, SOME.shape)
