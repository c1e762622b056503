"""Apps: reviewed code, pinned."""

from __future__ import annotations

from sublet.service.usage import Usage


class Apps(Usage):
    """Apps: reviewed code, pinned."""
