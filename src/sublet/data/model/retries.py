"""When a transfer that broke off is tried again: after longer pauses each time, while there is progress or patience."""

from __future__ import annotations

from dataclasses import dataclass

TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})  # what a server says that may help itself


@dataclass
class TransferRetries:
    """The tries of one transfer. Progress forgets the failures before it."""

    most: int = 5  # without any progress between them
    first: float = 0.5  # seconds before the second try; twice as long before each further one
    longest: float = 30.0
    failures: int = 0

    def note_failure(self, *, has_progress: bool, wanted: float = 0.0) -> float | None:
        """How many seconds to wait until the next try, at least as long as the server `wanted`; None: give up."""
        self.failures = 1 if has_progress else self.failures + 1
        if self.failures >= self.most:
            return None
        pause: float = min(max(wanted, self.first * 2.0 ** (self.failures - 1)), self.longest)
        return pause
