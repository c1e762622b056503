"""Lists that come in pages: pure state, which both clients drive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from sublet.booking.calls import sessions
from sublet.booking.views.sessions import SessionPage, SessionView
from sublet.client.call import Call
from sublet.client.wishes import Filters

PAGE = 100  # sessions per page


class SessionPages:
    """The sessions that match the filters, page by page, and at most `limit` of them."""

    def __init__(self, **filters: Unpack[Filters]) -> None:
        """Start before the first page."""
        self._left = filters.pop("limit", None)
        self._filters: dict[str, Any] = {**filters}
        self._after: str | None = ""

    def next_call(self) -> Call[SessionPage] | None:
        """Return the call for the next page; None after the last one."""
        if self._after is None or (self._left is not None and self._left < 1):
            return None
        size = PAGE if self._left is None else min(self._left, PAGE)
        return sessions.sessions(**self._filters, limit=size, after=self._after)

    def read_page(self, page: SessionPage) -> Sequence[SessionView]:
        """Return the sessions of a received page."""
        self._after = page.next
        views = page.items if self._left is None else page.items[: self._left]
        if self._left is not None:
            self._left -= len(views)
        return views
