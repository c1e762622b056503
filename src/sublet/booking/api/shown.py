"""Sessions as JSON, kept while they stay as they are: programs look again and again at what has not changed."""

from __future__ import annotations

from pydantic_core import to_json

from sublet.booking.model.session import Session
from sublet.booking.sessions import Page
from sublet.booking.views.convert import session_view
from sublet.kernel.views import plain

MOST = 1024


class ShownSessions:
    """What was written of the sessions that were shown last."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._known: dict[str, tuple[Session, str, bytes]] = {}

    def show(self, session: Session, base: str) -> bytes:
        """A session as JSON; `base` is where its page and its connectors are reached."""
        known = self._known.get(session.id)
        if known and known[0] is session and known[1] == base:  # the store gives the same object for the same row
            return known[2]
        if len(self._known) >= MOST:
            self._known.clear()
        shown = to_json(plain(session_view(session, base)))
        self._known[session.id] = session, base, shown
        return shown

    def show_page(self, page: Page, base: str) -> bytes:
        """A page of sessions as JSON, as SessionPage has it."""
        items = b",".join([self.show(session, base) for session in page.items])
        return b'{"items":[%b],"next":%b}' % (items, to_json(page.next))
