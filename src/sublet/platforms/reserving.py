"""What can be asked of a platform that holds its booked offers by reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable


@runtime_checkable
class Reserves(Protocol):
    """A platform whose booked offers are its own reservations, each under the key of the future session."""

    async def list_reservations(self) -> Mapping[str, datetime]:
        """Return the keys of this service's current reservations, and when each was made."""
        ...

    async def give_up(self, keys: Sequence[str]) -> None:
        """Cancel these reservations; ignore any that no longer exist."""
        ...
