"""A cache of sessions as JSON: programs poll sessions that have not changed."""

from __future__ import annotations

from collections import OrderedDict

from pydantic_core import to_json

from sublet.booking.model.session import Session
from sublet.booking.sessions import Page
from sublet.booking.views.convert import session_view
from sublet.kernel.views import plain

MOST = 2048


class ShownSessions:
    """The JSON of the sessions that were shown last."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._known: OrderedDict[str, tuple[Session, str, bytes]] = OrderedDict()

    def show(self, session: Session, base: str) -> bytes:
        """Return a session as JSON; `base` is the address under which its page and connectors are reached."""
        known = self._known.get(session.id)
        if known and known[0] is session and known[1] == base:  # the store gives the same object for the same row
            self._known.move_to_end(session.id)
            return known[2]
        shown = to_json(plain(session_view(session, base)))
        self._known[session.id] = session, base, shown
        self._known.move_to_end(session.id)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return shown

    def show_page(self, page: Page, base: str) -> bytes:
        """Return a page of sessions as JSON, in the shape of SessionPage."""
        items = b",".join([self.show(session, base) for session in page.items])
        return b'{"items":[%b],"next":%b}' % (items, to_json(page.next))
