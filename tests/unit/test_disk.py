"""Disk of a node's own is an amount like memory: asked for, counted, offered, and told to schedulers."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.documents.amounts import write_amounts
from sublet.booking.documents.request import read_request
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.holds import hold_of, takes_of
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import GIB, Compute, Range
from sublet.booking.model.shape import Amounts, Shape
from sublet.booking.store.bookings import read_takes, takes_text
from sublet.platforms.batch.fitting import find_excess
from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, flags
from sublet.platforms.slurm.readers import read_nodes
from tests.examples import examples
from tests.unit.test_offers import HOUR, NOW, asking, find
from tests.unit.test_offers_refused import the_reason

NODES = (Node("a", 8, 16 * GIB, 0, 100 * GIB), Node("b", 8, 32 * GIB, 0, 20 * GIB), Node("c", 2, 64 * GIB))


def wanting(least: int, most: int = 0, **more: Range) -> Any:
    return asking(compute=Compute(disk=Range(least * GIB, max(least, most) * GIB), **more))


def test_only_nodes_with_so_much_disk_free_are_offered() -> None:
    calendar = Calendar(NODES)
    offer = find(wanting(50), calendar).offers[0]
    assert (offer.nodes, offer.shape.disk) == (("a",), 50 * GIB)
    calendar.take("first", takes_of(offer))
    later = find(wanting(60), calendar).offers[0]
    assert later.start >= NOW + offer.duration
    assert find(wanting(40), calendar).offers[0].nodes == ("a",)
    assert find(wanting(0), calendar).offers[0].start == NOW


def test_as_much_as_is_welcome_is_offered() -> None:
    least, largest = find(wanting(10, 80), Calendar(NODES)).offers
    assert (least.shape.disk, largest.shape.disk) == (10 * GIB, 80 * GIB)


@pytest.mark.parametrize(
    ("request_", "nodes", "limit", "words"),
    [
        (wanting(200), NODES, "100GiB", "here has nodes of up to 100GiB of disk each; 200GiB was asked for."),
        (wanting(1), NODES[2:], "0B", "here has no disk of its nodes that can be asked for; 1GiB was asked for."),
        (wanting(50, memory=Range(32 * GIB, 32 * GIB)), NODES, "20GiB", "here has at most 20GiB of disk on a node"),
    ],
)
def test_a_no_names_the_largest_node(request_: Any, nodes: tuple[Node, ...], limit: str, words: str) -> None:
    reason = the_reason(find(request_, Calendar(nodes)))
    assert (reason.field, reason.limit) == ("compute.disk.min", limit)
    assert reason.message.startswith(words)


def test_a_request_says_it_in_both_forms() -> None:
    short = read_request({"run": ["true"], "disk": "50GiB-80GiB"}, NOW).compute
    assert short.disk == Range(50 * GIB, 80 * GIB)
    full = {"executable": {"kind": "command"}, "compute": {"kind": "node-compute-resource", "disk": {"max": 50}}}
    assert read_request(full, NOW).compute.disk.max == 50 * GIB
    assert read_request({"run": ["true"]}, NOW).compute.disk == Range(0, 0)
    written = write_amounts(Amounts(Shape(1, GIB, 0, 3 * GIB), 1, HOUR))
    assert written["disk"] == {"min": f"{3 * GIB}B", "max": f"{3 * GIB}B"}
    assert "disk" not in write_amounts(Amounts(Shape(1, GIB), 1, HOUR))


def test_it_is_stored_and_older_rows_have_none() -> None:
    takes = (Take("a", NOW, NOW + HOUR, 1, GIB, disk=5 * GIB), Take("b", NOW, NOW + HOUR, 1, GIB))
    assert read_takes(takes_text(takes)) == takes
    assert takes_text(takes[1:]).count(",") == 7  # as before there was disk


def test_slurm_is_asked_for_it_and_tells_what_nodes_have() -> None:
    wish = SlurmWish(amounts=Amounts(Shape(1, GIB, 0, 5 * GIB + 1), 1, HOUR), queue="short")
    assert "--tmp=5121M" in flags(wish, SlurmAccount())
    [node] = read_nodes("n1|short|4|1:4:1|8000|(null)|idle|20480")
    assert node.node.disk == 20 * GIB
    [older] = read_nodes("n1|short|4|1:4:1|8000|(null)|idle")
    assert older.node.disk == 0
    refused = find_excess(wanting(30), SiteQueue("short", up=True), [node], "far")
    assert refused is not None
    assert refused.message == "The queue short of far gives at most 20GiB disk on a node, and 30GiB were asked for."


sizes = st.integers(0, 9)


@examples(200)
@given(
    st.lists(st.tuples(sizes, sizes, st.integers(0, 300), st.integers(1, 200)), max_size=12),
    sizes,
    sizes,
    st.integers(1, 120),
)
def test_no_moment_has_more_disk_booked_than_there_is(
    booked: list[tuple[int, int, int, int]], cores: int, disk: int, minutes: int
) -> None:
    """The same start as a look at every minute finds."""
    calendar = Calendar([Node("n", 9, 9, 0, 9)], grain=4)
    held: list[Take] = []
    for number, (some, room, start, length) in enumerate(booked):
        begin = NOW + timedelta(minutes=start)
        take = Take("n", begin, begin + timedelta(minutes=length), some, 0, disk=room)
        if calendar.fits([take]):
            calendar.take(str(number), [take])
            held.append(take)

    def free(at: int) -> bool:
        time = NOW + timedelta(minutes=at)
        taken = [take for take in held if take.start <= time < take.end]
        return sum(take.cores for take in taken) + cores <= 9 and sum(take.disk for take in taken) + disk <= 9

    window: Any = SimpleNamespace(start=NOW, end=NOW + timedelta(days=2))
    slot = calendar.earliest(Shape(cores, 0, 0, disk), 1, timedelta(minutes=minutes), [window])
    first = next(at for at in range(1000) if all(map(free, range(at, at + minutes))))
    assert slot is not None
    assert slot.start == NOW + timedelta(minutes=first)


def test_a_hold_has_the_most_disk_of_its_offers() -> None:
    offers = find(wanting(10, 80), Calendar(NODES)).offers
    assert max(take.disk for take in hold_of(offers)) == 80 * GIB
