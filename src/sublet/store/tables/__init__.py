"""The tables. Times are microseconds since 1970 and documents are JSON text, so that both databases store the same."""

from __future__ import annotations

from sublet.store.tables import access, annexes, apps, hooks, people, sessions
from sublet.store.tables.schema import metadata

__all__ = ["access", "annexes", "apps", "hooks", "metadata", "people", "sessions"]
