"""Apps: reviewed code, pinned."""

from __future__ import annotations

from sublet.service.accounts import Accounts


class Apps(Accounts):
    """Apps: reviewed code, pinned."""
