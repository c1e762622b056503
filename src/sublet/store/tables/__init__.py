"""All tables. Times are microseconds since 1970 and documents are JSON text, so that both databases store the same."""

from __future__ import annotations

from sublet.access.store import tables as access
from sublet.annexes.store import tables as annexes
from sublet.apps.store import tables as apps
from sublet.archive.store import tables as archive
from sublet.booking.store import tables as sessions
from sublet.data.store import tables as data
from sublet.kernel.db.audit import audit
from sublet.kernel.db.schema import metadata
from sublet.notices.store import tables as hooks
from sublet.people.store import tables as people

__all__ = ["access", "annexes", "apps", "archive", "audit", "data", "hooks", "metadata", "people", "sessions"]
