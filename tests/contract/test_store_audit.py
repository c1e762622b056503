"""The audit log: rows are added, found by what is known of them, and read on from where one was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sublet.kernel.db.audit import AuditEntry
from sublet.store.store import Store

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


async def test_what_was_done_is_found_by_who_what_and_when(store: Store) -> None:
    entries = [
        AuditEntry(NOON, "anna@example.org", "rule.add", "rule", "r1", {"who": "*@example.org"}, "192.0.2.1"),
        AuditEntry(NOON + timedelta(hours=1), "", "sign-in.refused", "person", "eve@example.net", {}, "192.0.2.9"),
        AuditEntry(NOON + timedelta(hours=2), "anna@example.org", "rule.remove", "rule", "r1"),
    ]
    for entry in entries:
        await store.write(lambda tx, entry=entry: tx.audit.add(entry))
    found = await store.read(lambda tx: tx.audit.list())
    assert [entry.action for entry in found] == ["rule.add", "sign-in.refused", "rule.remove"]
    assert found[0].detail == {"who": "*@example.org"}
    assert [e.action for e in await store.read(lambda tx: tx.audit.list(action="rule.", limit=1))] == ["rule.add"]
    later = await store.read(lambda tx: tx.audit.list(person="anna@example.org", since=NOON + timedelta(minutes=1)))
    assert [entry.action for entry in later] == ["rule.remove"]
    rest = await store.read(lambda tx: tx.audit.list(after=found[1].id))
    assert [entry.time for entry in rest] == [NOON + timedelta(hours=2)]
    newest = await store.read(lambda tx: tx.audit.list(before=0, limit=2))
    assert [entry.id for entry in newest] == [found[2].id, found[1].id]
    assert [entry.id for entry in await store.read(lambda tx: tx.audit.list(before=found[1].id))] == [found[0].id]
