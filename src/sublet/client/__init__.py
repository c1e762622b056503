"""The SDK: `Client` and `AsyncClient`, over a Unix socket or HTTP.

Nothing is loaded until it is used: the command line imports parts of this package, and starts fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sublet.client.aio import AsyncClient
    from sublet.client.aio_sessions import AsyncOffer, AsyncOffers, AsyncSession
    from sublet.client.facts import Result
    from sublet.client.job import Job
    from sublet.client.sync import Client
    from sublet.client.sync_sessions import Offer, Offers, Session
    from sublet.client.user import User

__all__ = [
    "AsyncClient",
    "AsyncOffer",
    "AsyncOffers",
    "AsyncSession",
    "Client",
    "Job",
    "Offer",
    "Offers",
    "Result",
    "Session",
    "User",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "aio" if name.startswith("Async") else {"Job": "job", "Result": "facts", "User": "user"}.get(name, "sync")
    return getattr(importlib.import_module(f"sublet.client.{module}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
