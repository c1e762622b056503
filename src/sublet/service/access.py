"""Access: who may use what and how much of it, and who asked for more."""

from __future__ import annotations

from sublet.service.people import People


class Access(People):
    """Access: who may use what and how much of it, and who asked for more."""
