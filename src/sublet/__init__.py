"""When, and where, can I run this? Offers you can accept, and then it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sublet.client import AsyncClient as AsyncClient
    from sublet.client import Client as Client


def __getattr__(name: str) -> Any:
    """`Client` and `AsyncClient`, loaded when they are used: the command line starts without them."""
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sublet import client

    return getattr(client, name)
