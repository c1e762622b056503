"""Addresses and ports of this machine at which an access point can be reached."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from pathlib import Path

from sublet.kernel.errors import AccessPointFailed

FIRST_PORT, LAST_PORT = 9618, 9717  # from HTCondor's own, one for each person on a machine
_ANYWHERE = "192.0.2.1"  # a reserved address (RFC 5737)
_PORTABLE = {"8", "9", "10", "14", "30", "31", "32"}  # SMBIOS chassis types of laptops, notebooks and tablets


def towards(host: str) -> str:
    """Return this machine's address towards a host, or towards anywhere if the host has no address; sends nothing."""
    for far in (host, _ANYWHERE):
        try:
            family, kind, protocol, _, place = socket.getaddrinfo(far, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(place)
                return str(probe.getsockname()[0])
        except (OSError, UnicodeError):
            continue  # an alias of ~/.ssh/config, or no route
    raise AccessPointFailed(
        why=f"this machine knows no way to {host}",
        hint="Set `address` in the section [annex] of sublet.toml to the one that nodes can connect to.",
    )


def is_here(address: str) -> bool:
    """Whether an address belongs to this machine."""
    return can_listen(address, 0)


def can_listen(address: str, port: int) -> bool:
    """Whether a port of an address is free to listen on."""
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def free_port(address: str) -> int:
    """Return the first free port, from HTCondor's own on."""
    for port in range(FIRST_PORT, LAST_PORT + 1):
        if can_listen(address, port):
            return port
    raise AccessPointFailed(
        why=f"all ports from {FIRST_PORT} to {LAST_PORT} of {address} are taken",
        hint="Set `port` in the section [annex] of sublet.toml.",
    )


def is_portable(dmi: Path = Path("/sys/class/dmi/id"), power: Path = Path("/sys/class/power_supply")) -> bool:
    """Whether this machine is portable, so that connections to it are often lost."""
    try:
        if (dmi / "chassis_type").read_text().strip() in _PORTABLE:
            return True
    except OSError:
        pass  # unknown: look for a battery
    return any((supply / "capacity").exists() and _is_battery(supply) for supply in sorted(power.glob("BAT*")))


def _is_battery(supply: Path) -> bool:
    try:
        return (supply / "type").read_text().strip() == "Battery"
    except OSError:
        return False
