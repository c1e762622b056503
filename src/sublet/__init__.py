"""When, and where, can I run this? Offers you can accept, and then it runs.

from sublet import Client

with Client() as client:
    session = client.run(run=["python", "sim.py"], cores=2, time="10m")
    print(session.exit_code)
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing typing would double the time until Ctrl-C is handled
if TYPE_CHECKING:
    from typing import Any

    from sublet.client import AsyncClient as AsyncClient
    from sublet.client import AsyncOffer as AsyncOffer
    from sublet.client import AsyncOffers as AsyncOffers
    from sublet.client import AsyncSession as AsyncSession
    from sublet.client import Client as Client
    from sublet.client import Job as Job
    from sublet.client import Offer as Offer
    from sublet.client import Offers as Offers
    from sublet.client import Result as Result
    from sublet.client import Session as Session
    from sublet.client import User as User
    from sublet.kernel import errors as errors
    from sublet.kernel.errors import NoOffers as NoOffers
    from sublet.kernel.errors import NotOverYet as NotOverYet
    from sublet.kernel.errors import SubletError as SubletError

    __version__: str

# Public name → its module, imported on first use, so that the command line starts without them.
_FROM = {
    "AsyncClient": "client",
    "AsyncOffer": "client",
    "AsyncOffers": "client",
    "AsyncSession": "client",
    "Client": "client",
    "Job": "client",
    "NoOffers": "errors",
    "NotOverYet": "errors",
    "Offer": "client",
    "Offers": "client",
    "Result": "client",
    "Session": "client",
    "SubletError": "errors",
    "User": "client",
}
__all__ = [
    "AsyncClient",
    "AsyncOffer",
    "AsyncOffers",
    "AsyncSession",
    "Client",
    "Job",
    "NoOffers",
    "NotOverYet",
    "Offer",
    "Offers",
    "Result",
    "Session",
    "SubletError",
    "User",
    "__version__",
    "errors",
]


def __getattr__(name: str) -> Any:
    """Return a public name, imported when it is first used."""
    if name == "__version__":
        from importlib.metadata import version  # slow to load

        return version("sublet")
    if name == "errors":
        return importlib.import_module("sublet.errors")
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"sublet.{_FROM[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    own = {name for name in globals() if name.startswith("__")}
    return sorted(own | set(__all__))
