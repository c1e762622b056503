"""Reservations by which a platform holds what it offers: what one that makes them can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable


@runtime_checkable
class Reserves(Protocol):
    """A platform whose booked offers are reservations of its own, each under the key of the session to come."""

    async def list_reservations(self) -> Mapping[str, datetime]:
        """The keys of those that this service made and has not given up, and when each was made."""
        ...

    async def give_up(self, keys: Sequence[str]) -> None:
        """Cancel them; one that is gone is no error."""
        ...
