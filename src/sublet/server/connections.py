"""The open TCP connections: their number, their hosts, and which one is closed to make room for another."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import structlog

from sublet.kernel.settings_operation import ConnectionSettings
from sublet.kernel.throttle import neighbours

log = structlog.get_logger()

Network = IPv4Network | IPv6Network
RESERVED = 128  # descriptors for everything but connections: the owner's socket, files, the database, pipes to programs
LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.0/8"), ip_network("::1"))


@dataclass(eq=False, slots=True)
class Seat:
    """One counted connection."""

    host: str  # the address or network it is counted under; empty if its host has no limit
    socket: socket.socket


class Connections:
    """The open connections; at the limit, a connection without a complete request makes room for a new one."""

    def __init__(self, most: int, per_host: int, trusted: Sequence[Network] = LOOPBACK) -> None:
        """Start with no connections; trusted hosts, such as reverse proxies, have no limit per host."""
        self.most, self.per_host = most, per_host
        self._trusted = trusted
        self._seats: set[Seat] = set()
        self._hosts: Counter[str] = Counter()
        self._idle: dict[Seat, None] = {}  # waiting for a request, or for the rest of one; oldest first
        self._ending: set[Seat] = set()  # shut down by us, but not closed yet
        self._refused = self._closed = 0  # since the last report

    @classmethod
    def limit(cls, settings: ConnectionSettings, proxies: Sequence[str], descriptors: int) -> Connections:
        """Use the configured limits, but leave enough descriptors for everything else."""
        most = min(settings.most, max(descriptors - RESERVED, descriptors // 4))
        return cls(most, settings.per_host, (*LOOPBACK, *_networks(proxies)))

    def __len__(self) -> int:
        """Return the number of open connections."""
        return len(self._seats)

    @property
    def is_crowded(self) -> bool:
        """Whether too many connections that were shut down still hold their descriptors."""
        return len(self._ending) > max(4, self.most // 16)

    def admit(self, sock: socket.socket, host: str) -> Seat | None:
        """Count a new connection; return None if the limit, of all connections or of its host, is reached."""
        counted = "" if self._is_trusted(host) else neighbours(host)
        if counted and self._hosts[counted] >= self.per_host and not self.close_oldest(counted):
            self._refused += 1
            return None
        if len(self._seats) >= self.most and not self.close_oldest():
            self._refused += 1
            return None
        seat = Seat(counted, sock)
        self._seats.add(seat)
        self._idle[seat] = None
        if counted:
            self._hosts[counted] += 1
        return seat

    def mark_idle(self, seat: Seat) -> None:
        """Mark a connection as waiting for its next request, or for the rest of one."""
        if seat in self._seats:
            self._idle[seat] = None

    def mark_busy(self, seat: Seat) -> None:
        """Mark a connection as having sent a complete request, which is being answered."""
        self._idle.pop(seat, None)

    def leave(self, seat: Seat) -> None:
        """Remove a connection that is closed."""
        self._ending.discard(seat)
        if seat not in self._seats:
            return
        self._seats.discard(seat)
        self._idle.pop(seat, None)
        if seat.host:
            self._hosts[seat.host] -= 1
            if not self._hosts[seat.host]:
                del self._hosts[seat.host]

    def close_oldest(self, host: str = "") -> bool:
        """Close the connection, of this host or of any, that has been idle longest; return whether there was one."""
        seat = next((seat for seat in self._idle if not host or seat.host == host), None)
        if seat is None:
            return False
        self.leave(seat)
        self._ending.add(seat)
        self._closed += 1
        with contextlib.suppress(OSError):
            seat.socket.shutdown(socket.SHUT_RDWR)  # the protocol that reads from it sees the end, and closes it
        return True

    def report(self) -> None:
        """Log, in one line, how many connections were refused or closed for others since the last report."""
        if self._refused or self._closed:
            facts = {"refused": self._refused, "closed_idle": self._closed, "open": len(self._seats)}
            log.warning("connections.full", **facts, most=self.most, per_host=self.per_host)
            self._refused = self._closed = 0

    def _is_trusted(self, host: str) -> bool:
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in network for network in self._trusted)


class CountedSocket(socket.socket):
    """A connection's socket, which is counted until its descriptor is closed."""

    connections: Connections
    seat: Seat | None = None

    @classmethod
    def count(cls, accepted: socket.socket, connections: Connections, host: str) -> CountedSocket | None:
        """Return the socket as a counted one, or None (and leave it unchanged) if the limit is reached."""
        family, kind, protocol = accepted.family, accepted.type, accepted.proto
        if (seat := connections.admit(accepted, host)) is None:
            return None
        counted = cls(family, kind, protocol, fileno=accepted.detach())
        counted.setblocking(False)
        counted.connections, counted.seat = connections, seat
        seat.socket = counted
        return counted

    def close(self) -> None:
        """Close the socket, and stop counting it."""
        if self.seat is not None:
            self.connections.leave(self.seat)
        super().close()


def _networks(proxies: Sequence[str]) -> list[Network]:
    """Return the networks of the proxies; names that aren't addresses, such as Unix sockets, don't connect by TCP."""
    networks = []
    for proxy in proxies:
        with contextlib.suppress(ValueError):
            networks.append(ip_network(proxy, strict=False))
    return networks
