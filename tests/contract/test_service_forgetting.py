"""What nobody took or submitted is removed as fast as it comes, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.app import build_context, open_service
from sublet.apps.model.draft import Draft
from sublet.booking.forgetting import KEPT, Forgetting
from sublet.booking.model.phases import Phase
from sublet.kernel.db.engine import Database
from sublet.kernel.settings import Settings
from sublet.service import Service
from sublet.store.migrate import let_shrink
from sublet.store.tx import Tx
from tests.contract.services import ME, ask
from tests.contract.stored import offer_some
from tests.databases import put_database

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


@pytest.fixture
async def service(store_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    """A service whose loop stands still, on each database."""
    settings = Settings.load(tmp_path, database=store_url, platforms={"trial": {"kind": "memory"}}, keep_drafts="2d")
    async with open_service(settings, loop=False) as service:
        yield service


async def pile_up(service: Service, count: int) -> list[str]:
    """Record answers of some hours ago, every hundredth with something that was accepted; those sets."""
    old = service.now() - 3 * KEPT

    def work(tx: Tx) -> list[str]:
        times = [old + timedelta(milliseconds=number // 7) for number in range(count)]
        sets = [offer_some(tx, created=time, count=1)[0] for time in times]
        for number, session in enumerate(sets):
            to = Phase.EXPIRED if number % 100 else Phase.ACCEPTED
            tx.sessions.move(session.id, to, now=old, when=(Phase.OFFERED,))
        return [session.offerset for session in sets[::100]]

    return await service.store.write(work)


async def count_sets(service: Service) -> set[str]:
    """The offer sets that have sessions."""
    page = await service.store.read(lambda tx: tx.sessions.list(limit=10_000))
    return {session.offerset for session in page.items}


async def test_a_backlog_is_removed_within_a_few_turns_and_what_was_accepted_stays(service: Service) -> None:
    recent = await ask(service)
    accepted = await pile_up(service, 650)
    forgetting = Forgetting(build_context(service))
    turns = 1
    while await forgetting.forget(service.now()):
        turns += 1
    assert turns <= 3, "batches grow while there is a backlog"
    assert await count_sets(service) == {*accepted, recent.id}
    more = await pile_up(service, 10)
    await forgetting.forget(service.now() + timedelta(seconds=1))
    assert len(await count_sets(service)) > len(accepted) + 1 + len(more), "it is looked once a minute"
    await service.offers.reject_all(ME)
    await forgetting.forget(service.now() + 2 * timedelta(minutes=1))
    assert await count_sets(service) == {*accepted, *more, recent.id}
    await forgetting.forget(service.now() + 2 * DAY)
    assert await count_sets(service) == {*accepted, *more}, "offers of a day ago are forgotten too"


async def test_offers_beside_a_session_are_forgotten_soon_after_it_is_over_though_it_was_seen_going_on(
    service: Service,
) -> None:
    old = service.now() - 3 * KEPT

    def take_one(tx: Tx) -> str:
        taken, *others = offer_some(tx, created=old, count=3)
        tx.sessions.move(taken.id, Phase.ACCEPTED, now=old, when=(Phase.OFFERED,))
        for other in others:
            tx.sessions.move(other.id, Phase.REJECTED, now=old, when=(Phase.OFFERED,))
        return taken.id

    async def list_left() -> list[str]:
        page = await service.store.read(lambda tx: tx.sessions.list(limit=100))
        return [session.id for session in page.items]

    id = await service.store.write(take_one)
    forgetting = Forgetting(build_context(service))
    await forgetting.forget(service.now())
    assert len(await list_left()) == 3
    await service.store.write(lambda tx: tx.sessions.move(id, Phase.CANCELLED, now=old, when=(Phase.ACCEPTED,)))
    await forgetting.forget(service.now() + timedelta(minutes=2))
    assert await list_left() == [id]


async def test_drafts_that_nobody_submits_are_forgotten_before_those_that_ran(service: Service) -> None:
    now = service.now()
    ages = {"fresh": (1, ""), "stale": (3, ""), "ran": (30, "s1"), "ancient": (400, "s2")}
    for id, (days, session) in ages.items():
        draft = Draft(id, ME.name, now - days * DAY, now - days * DAY, {}, session)
        await service.store.write(lambda tx, one=draft: tx.drafts.add(one))
    await Forgetting(build_context(service)).forget(service.now())
    assert {draft.id for draft, _ in await service.drafts.drafts(ME)} == {"fresh", "ran"}


async def test_the_file_shrinks_after_much_was_forgotten(service: Service, store_url: str) -> None:
    found, old = await ask(service), service.now() - 3 * KEPT
    large = [replace(found, id=str(uuid4()), created=old, document="x" * 200_000, offers=()) for _ in range(80)]
    await service.store.write(lambda tx: [tx.offersets.add(one) for one in large])
    forgetting = Forgetting(build_context(service))
    turns = 0
    while await forgetting.forget(service.now()):
        turns += 1
        assert turns < 20, "it comes to an end"
    if store_url.startswith("sqlite"):
        with sqlite3.connect(store_url.removeprefix("sqlite:///")) as file:
            pages, free = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        assert free <= 1024, "what is kept for what comes next"
        assert pages < 2 * 1024, "of about 4,000 pages"


def test_a_file_from_before_files_could_shrink_is_made_able_to(tmp_path: Path) -> None:
    put_database(tmp_path / "old.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as file:
        file.execute("PRAGMA journal_mode = DELETE")
        file.execute("PRAGMA auto_vacuum = NONE")
        file.execute("VACUUM")
        assert file.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    database = Database(f"sqlite:///{tmp_path / 'old.db'}")
    let_shrink(database)
    database.close()
    with closing(sqlite3.connect(tmp_path / "old.db")) as file:
        assert file.execute("PRAGMA auto_vacuum").fetchone() == (2,)
