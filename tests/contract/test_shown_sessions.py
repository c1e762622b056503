"""Sessions are written as JSON once while they stay as they are, and are always shown as they are now."""

from __future__ import annotations

import pytest
from pydantic_core import from_json, to_json

from sublet.booking.api.shown import MOST, ShownSessions
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.sessions import Page
from sublet.booking.views.convert import session_view
from sublet.booking.views.sessions import SessionPage
from sublet.kernel.views import plain
from sublet.store import Store
from tests.contract.stored import MINUTE, NOON, a_session, a_set, define, offer_some

pytestmark = pytest.mark.anyio
BASE = "https://example.org"


async def read(store: Store, id: str) -> Session:
    session = await store.glance(lambda tx: tx.sessions.get(id))
    assert session
    return session


async def test_what_has_not_changed_is_written_once_and_what_has_is_shown_as_it_is_now(store: Store) -> None:
    await store.write(define)
    offered = (await store.write(lambda tx: offer_some(tx)))[0]
    shown = ShownSessions()
    first = shown.show(await read(store, offered.id), BASE)
    assert from_json(first) == from_json(to_json(plain(session_view(offered, BASE))))
    assert shown.show(await read(store, offered.id), BASE) is first

    await store.write(lambda tx: tx.sessions.move(offered.id, Phase.REJECTED, now=NOON + MINUTE))
    second = from_json(shown.show(await read(store, offered.id), BASE))
    assert (second["phase"], second["modified"]) == ("REJECTED", "2030-01-07T12:01:00Z")
    assert from_json(shown.show(await read(store, offered.id), "http://other"))["page"].startswith("http://other/web/")


def test_a_page_is_as_its_view_says_and_only_so_many_are_kept() -> None:
    sessions = tuple(a_session(a_set()) for _ in range(3))
    shown = ShownSessions()
    for page in (Page(sessions, "cursor"), Page((), None)):
        view = SessionPage(items=tuple(session_view(session, BASE) for session in page.items), next=page.next)
        assert shown.show_page(page, BASE) == to_json(plain(view))
    for _ in range(MOST + 10):
        shown.show(a_session(a_set()), BASE)
    assert len(shown._known) <= MOST
