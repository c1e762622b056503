"""What the conformance suite asks of a platform that runs something else than programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sublet.booking.model.job import Program


@runtime_checkable
class WritesTrials(Protocol):
    """A platform that runs no programs as they are: notebooks, say."""

    def write_trial(self, argv: Sequence[str]) -> Program:
        """What it can run, and does what these words do."""
        ...
