"""Calls about other brokers."""

from __future__ import annotations

from dataclasses import asdict

from sublet.booking.views.brokers import BrokerAddition, BrokerList, BrokerView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def brokers() -> Call[BrokerList]:
    """List the brokers."""
    return Call("GET", path_of("brokers"), as_view(BrokerList))


def add(wish: BrokerAddition) -> Call[BrokerView]:
    """Add a broker, with its token."""
    return Call("POST", path_of("brokers"), as_view(BrokerView), body=body_of(asdict(wish)))


def set_token(name: str, token: str) -> Call[BrokerView]:
    """Replace the token for a broker."""
    return Call("POST", path_of("brokers", name, "token"), as_view(BrokerView), body=body_of({"token": token}))


def check(name: str) -> Call[BrokerView]:
    """Check now whether a broker answers."""
    return Call("POST", path_of("brokers", name, "check"), as_view(BrokerView))


def remove(name: str) -> Call[None]:
    """Remove a broker."""
    return Call("DELETE", path_of("brokers", name), nothing)
