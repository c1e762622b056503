"""What the things that everyone does cost: how often they read and write, and with how many statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.sql.elements import ClauseElement

from sublet.kernel.db.sql import Params, Sql
from sublet.people.model.person import Person
from sublet.store.glances import Glances
from sublet.store.store import Store
from tests.contract.services import allow, ask, serving

pytestmark = pytest.mark.anyio
ANNA = Person("anna@example.org")
TRIAL = {"trial": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "1h"}}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Counts, while a block lasts, reads and writes, and statements by the table that they begin with."""
    counts: Counter[str] = Counter()
    run, many, read, write = Sql._run, Sql.change_many, Store.read, Store.write
    look = Glances.look

    def count(statement: ClauseElement) -> None:
        words = str(statement).split()
        counts["statements"] += 1
        counts[words[words.index("FROM") + 1 if "FROM" in words else 2 if words[0] == "INSERT" else 1]] += 1

    def counted_run(self: Sql, statement: ClauseElement, params: Params) -> None:
        count(statement)
        run(self, statement, params)

    def counted_many(self: Sql, statement: ClauseElement, params: Any) -> None:
        if len(params) > 1:
            count(statement)
        many(self, statement, params)

    async def counted_read(self: Store, work: Any) -> Any:
        counts["reads"] += 1
        return await read(self, work)

    def counted_look(self: Glances, work: Any) -> Any:
        result = look(self, work)  # else it is read, and counted there
        counts["reads"] += 1
        return result

    async def counted_write(self: Store, work: Any) -> Any:
        counts["writes"] += 1
        return await write(self, work)

    monkeypatch.setattr(Sql, "_run", counted_run)
    monkeypatch.setattr(Sql, "change_many", counted_many)
    monkeypatch.setattr(Store, "read", counted_read)
    monkeypatch.setattr(Store, "write", counted_write)
    monkeypatch.setattr(Glances, "look", counted_look)

    @contextmanager
    def while_this_lasts() -> Iterator[Counter[str]]:
        counts.clear()
        yield counts

    return while_this_lasts


async def test_asking_on_a_gateway_is_one_write_of_few_statements(tmp_path: Path, counted: Callable[[], Any]) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service)
        wish = {"run": None, "image": "docker://busybox", "cores": "1-2", "time": "1h"}
        await ask(service, ANNA, **wish)
        with counted() as counts:
            found = await ask(service, ANNA, **wish)
        assert found.result == "YES"
        assert (counts["writes"], counts["reads"]) == (1, 1)
        assert counts["people,"] + counts["people"] == 1  # whose mailbox it is
        assert counts["identities"] == counts["members"] == counts["rules"] == counts["uses"] == 1
        assert counts["statements"] <= 14, counts  # one of them looks how the clock is set


async def test_accepting_on_a_gateway_is_one_write_with_its_token(tmp_path: Path, counted: Callable[[], Any]) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service)
        found = await ask(service, ANNA, run=None, image="docker://busybox", cores="1-2", time="1h")
        with counted() as counts:
            accepted, secret = await service.people.tokens.accept_with_token(found.offers[0].id, ANNA)
        assert (counts["writes"], counts["reads"]) == (1, 1)
        assert counts["identities"] == counts["members"] == counts["rules"] == 1
        assert counts["statements"] <= 22, counts
        holder = await service.people.tokens.bearer(secret)
        assert holder is not None
        assert (holder.name, holder.session) == (ANNA.name, accepted.id)


async def test_looking_at_a_session_is_one_read_of_one_statement(tmp_path: Path, counted: Callable[[], Any]) -> None:
    async with serving(tmp_path, platforms=TRIAL, loop=False) as service:
        me = Person("me")
        found = await ask(service, me)
        with counted() as counts:
            await service.sessions.get(found.offers[0].id, me)
        assert (counts["writes"], counts["reads"], counts["statements"]) == (0, 1, 1)
