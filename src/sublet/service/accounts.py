"""Community accounts: the systems that a gateway uses for its people."""

from __future__ import annotations

from sublet.service.access import Access


class Accounts(Access):
    """Community accounts: the systems that a gateway uses for its people."""
