"""The SDK: `Client` and `AsyncClient`, over a Unix socket or HTTP.

Nothing is loaded until it is used: the command line imports parts of this package, and starts fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sublet.client.aio import AsyncClient, AsyncOffer, AsyncOffers, AsyncSession
    from sublet.client.sync import Client, Offer, Offers, Session

__all__ = ["AsyncClient", "AsyncOffer", "AsyncOffers", "AsyncSession", "Client", "Offer", "Offers", "Session"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(
        importlib.import_module("sublet.client.aio" if name.startswith("Async") else "sublet.client.sync"), name
    )
