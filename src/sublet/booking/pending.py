"""Requests that are being answered, and the platforms that each of them still waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that is being answered."""

    person: str
    since: datetime
    waiting: set[str] = field(default_factory=set)  # platforms that have not answered yet


class Pending:
    """The requests that this process is answering."""

    def __init__(self) -> None:
        """Start without requests."""
        self._requests: dict[int, PendingRequest] = {}

    @contextmanager
    def waiting_for(self, person: str, now: datetime) -> Iterator[set[str]]:
        """Register a request while the block runs; the yielded set has the platforms that it waits for."""
        request = PendingRequest(person, now)
        self._requests[id(request)] = request
        try:
            yield request.waiting
        finally:
            del self._requests[id(request)]

    def of(self, person: str) -> Sequence[PendingRequest]:
        """Return one person's requests, oldest first."""
        return [request for request in self._requests.values() if request.person == person]
