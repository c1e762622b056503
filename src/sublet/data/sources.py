"""Tells which host data comes from."""

from __future__ import annotations

from urllib.parse import urlsplit

from sublet.booking.model.request import Data


def source_of(data: Data) -> str:
    """Return the host that data comes from; empty if it is on this machine."""
    return urlsplit(data.location).netloc.rpartition("@")[2]
