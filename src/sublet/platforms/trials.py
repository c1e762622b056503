"""What the conformance suite needs from a platform that can't run programs directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sublet.booking.model.job import Program


@runtime_checkable
class WritesTrials(Protocol):
    """A platform that can't run programs directly, such as one that runs notebooks."""

    def write_trial(self, argv: Sequence[str]) -> Program:
        """Return something that the platform can run, and that does the same as this command line."""
        ...
