"""Requests that are being answered, and which platforms each of them still waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """One of them."""

    person: str
    since: datetime
    waiting: set[str] = field(default_factory=set)  # platforms that have not answered yet


class Pending:
    """All of them, in this process."""

    def __init__(self) -> None:
        """Nobody asks anything."""
        self._requests: dict[int, PendingRequest] = {}

    @contextmanager
    def waiting_for(self, person: str, now: datetime) -> Iterator[set[str]]:
        """While the block lasts someone waits for the platforms in this set."""
        request = PendingRequest(person, now)
        self._requests[id(request)] = request
        try:
            yield request.waiting
        finally:
            del self._requests[id(request)]

    def of(self, person: str) -> Sequence[PendingRequest]:
        """Those of one person, oldest first."""
        return [request for request in self._requests.values() if request.person == person]
