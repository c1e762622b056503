"""Retries of interrupted transfers, with exponential backoff, until there is no progress for too many attempts."""

from __future__ import annotations

from dataclasses import dataclass

TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})  # HTTP statuses after which a retry may help


@dataclass
class TransferRetries:
    """The retries of one transfer; progress resets the count of failures."""

    most: int = 5  # failures in a row without progress
    first: float = 0.5  # seconds before the first retry, doubled each time
    longest: float = 30.0
    failures: int = 0

    def note_failure(self, *, has_progress: bool, wanted: float = 0.0) -> float | None:
        """Return the seconds to wait before a retry, at least those that the server `wanted`; None: give up."""
        self.failures = 1 if has_progress else self.failures + 1
        if self.failures >= self.most:
            return None
        pause: float = min(max(wanted, self.first * 2.0 ** (self.failures - 1)), self.longest)
        return pause
