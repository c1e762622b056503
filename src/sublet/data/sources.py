"""Where data comes from."""

from __future__ import annotations

from urllib.parse import urlsplit

from sublet.booking.model.request import Data


def source_of(data: Data) -> str:
    """The host that some data comes from; empty: it is on this machine."""
    return urlsplit(data.location).netloc.rpartition("@")[2]
