"""Who is connected: limits for all and for each host, and who gives way."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_network

import pytest

from sublet.kernel.settings_operation import ConnectionSettings
from sublet.server.connections import RESERVED, Connections, CountedSocket


class Visitors:
    """Makes connections that come from wherever a test says."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def come(self, connections: Connections, host: str) -> tuple[socket.socket, CountedSocket | None]:
        """One more: its own end, and ours if it was let in."""
        theirs, ours = map(self._stack.enter_context, socket.socketpair())
        theirs.setblocking(False)
        counted = CountedSocket.count(ours, connections, host)
        return theirs, self._stack.enter_context(counted) if counted else None


@pytest.fixture
def visitors() -> Iterator[Visitors]:
    with ExitStack() as stack:
        yield Visitors(stack)


def is_closed(theirs: socket.socket) -> bool:
    """Whether the other side has ended it."""
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


def busy(connections: Connections, counted: CountedSocket | None) -> None:
    """It has sent a whole request."""
    assert counted
    assert counted.seat
    connections.mark_busy(counted.seat)


def test_when_all_places_are_taken_the_oldest_without_a_request_gives_way(visitors: Visitors) -> None:
    connections = Connections(most=3, per_host=3)
    first, working = visitors.come(connections, "192.0.2.1")
    busy(connections, working)
    second, _ = visitors.come(connections, "192.0.2.2")
    third, _ = visitors.come(connections, "192.0.2.3")
    _, fourth = visitors.come(connections, "192.0.2.4")
    assert fourth
    assert [is_closed(one) for one in (first, second, third)] == [False, True, False]
    assert len(connections) == 3


def test_when_all_of_them_work_a_new_one_is_refused_until_one_ends(visitors: Visitors) -> None:
    connections = Connections(most=2, per_host=2)
    counted = [visitors.come(connections, f"192.0.2.{number}")[1] for number in (1, 2)]
    for one in counted:
        busy(connections, one)
    assert visitors.come(connections, "192.0.2.3")[1] is None
    assert counted[0]
    counted[0].close()
    counted[0].close()  # a second time changes nothing
    assert len(connections) == 1
    assert visitors.come(connections, "192.0.2.3")[1]


def test_a_host_has_its_own_limit_and_takes_no_place_of_others(visitors: Visitors) -> None:
    connections = Connections(most=100, per_host=2)
    other, _ = visitors.come(connections, "198.51.100.1")
    greedy = [visitors.come(connections, "192.0.2.1") for _ in range(5)]
    assert [is_closed(theirs) for theirs, _ in greedy] == [True, True, True, False, False]
    assert not is_closed(other)
    for _, counted in greedy[3:]:
        busy(connections, counted)
    assert visitors.come(connections, "192.0.2.1")[1] is None
    assert visitors.come(connections, "192.0.2.2")[1]


def test_all_addresses_of_an_ipv6_network_are_one_host(visitors: Visitors) -> None:
    connections = Connections(most=100, per_host=2)
    for number in range(5):
        assert visitors.come(connections, f"2001:db8::{number + 1}")[1]
    assert len(connections) == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.2.3"])
def test_a_reverse_proxy_has_no_limit_of_its_own(visitors: Visitors, host: str) -> None:
    settings = ConnectionSettings(most=20, per_host=2)
    connections = Connections.limit(settings, ["10.1.0.0/16", "unix:"], 1000)
    for _ in range(15):
        assert visitors.come(connections, host)[1]
    assert len(connections) == 15


@pytest.mark.parametrize(("descriptors", "most"), [(64, 16), (1024, 1024 - RESERVED), (1 << 20, 4000)])
def test_connections_leave_descriptors_for_everything_else(descriptors: int, most: int) -> None:
    assert Connections.limit(ConnectionSettings(), (), descriptors).most == most


def test_only_trusted_networks_are_not_counted_by_host(visitors: Visitors) -> None:
    connections = Connections(100, 1, (ip_network("192.0.2.0/24"),))
    for host in ("192.0.2.9", "192.0.2.9", "127.0.0.1", "127.0.0.1"):
        visitors.come(connections, host)
    assert len(connections) == 3
