"""Accounts, turns and usage, on both databases; several processes give no place away twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from sublet.access.model.account import Account
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.model.shape import TotalAmounts
from sublet.store.store import Store
from tests.contract.stored import NOON, a_session, a_set, an_offer

pytestmark = pytest.mark.anyio
KEELING = Account("keeling", "keeling.example.org", "community", capacity=3, options=("--nice=5",), globus={"a": "b"})
MINUTE = timedelta(minutes=1)


async def test_an_account_is_kept_as_it_is_and_its_key_apart(store: Store) -> None:
    await store.write(lambda tx: tx.accounts.add(KEELING, "sealed1.x.y", NOON))
    found = await store.read(lambda tx: tx.accounts.get("keeling"))
    assert found == replace(KEELING, created=NOON, changed=NOON)
    stamp = await store.read(lambda tx: tx.accounts.stamp())
    await store.write(lambda tx: tx.accounts.change(replace(KEELING, capacity=5), NOON + MINUTE))
    assert await store.read(lambda tx: tx.accounts.stamp()) != stamp
    assert await store.read(lambda tx: tx.accounts.keys()) == {"keeling": "sealed1.x.y"}
    await store.write(lambda tx: tx.accounts.seal("keeling", "sealed1.z.y"))
    assert await store.read(lambda tx: tx.accounts.key("keeling")) == "sealed1.z.y"
    assert [one.capacity for one in await store.read(lambda tx: tx.accounts.list())] == [5]
    assert await store.write(lambda tx: tx.accounts.remove("keeling"))
    assert await store.read(lambda tx: tx.accounts.key("keeling")) == ""


async def test_places_go_round_and_each_end_brings_the_next(store: Store) -> None:
    await store.write(lambda tx: tx.accounts.add(KEELING, "", NOON))
    anns = [_at_keeling("ann") for _ in range(5)]
    bob = _at_keeling("bob")
    for minute, session in enumerate(anns):
        place, _ = await store.write(lambda tx, s=session, m=minute: tx.turns.ask(s, NOON + m * MINUTE))
        assert place.taken == (minute < 3)
        assert (place.there, place.capacity) == (min(minute + 1, 3), 3)
    place, _ = await store.write(lambda tx: tx.turns.ask(bob, NOON + 9 * MINUTE))
    assert not place.taken
    again, _ = await store.write(lambda tx: tx.turns.ask(anns[0], NOON + 9 * MINUTE))
    assert again.taken
    assert list(await store.write(lambda tx: tx.turns.end(anns[0].id, NOON))) == [bob.id]
    assert list(await store.write(lambda tx: tx.turns.end(anns[0].id, NOON))) == []
    assert list(await store.write(lambda tx: tx.turns.end(anns[4].id, NOON))) == []  # it never came
    await store.write(lambda tx: tx.accounts.change(replace(KEELING, capacity=9), NOON))
    assert list(await store.write(lambda tx: tx.turns.share_again("keeling", NOON))) == [anns[3].id]


async def test_processes_that_share_the_work_never_give_a_place_away_twice(
    store: Store, open_store: Callable[[], Store]
) -> None:
    await store.write(lambda tx: tx.accounts.add(KEELING, "", NOON))
    others = [open_store(), open_store()]
    sessions = [_at_keeling(f"p{n % 4}") for n in range(24)]
    asked = [[store, *others][n % 3].write(lambda tx, s=s: tx.turns.ask(s, NOON)) for n, s in enumerate(sessions)]
    await asyncio.gather(*asked)
    turns = await store.read(lambda tx: tx.turns.of("keeling"))
    assert len(turns) == 24
    assert sum(turn.taken is not None for turn in turns) == 3


async def test_what_was_used_stays_when_the_session_is_deleted(store: Store) -> None:
    offers = a_set()
    ran, runs, waits = (replace(_at_keeling(who), offerset=offers.id) for who in ("ann", "bob", "cy"))
    ran = replace(ran, phase=Phase.RUNNING, started=NOON)
    runs = replace(runs, phase=Phase.RUNNING, started=NOON)
    await store.write(lambda tx: (tx.offersets.add(offers), tx.sessions.add_offers([ran, runs, waits])))
    for one in (ran, runs):
        await store.write(lambda tx, one=one: tx.uses.add(one, TotalAmounts(8, 0, 1, 2, MINUTE), "", NOON))
    period = (NOON - MINUTE, NOON + MINUTE)
    assert [one.ended for one in await store.read(lambda tx: tx.uses.ran(*period))] == [None, None]
    later = NOON + MINUTE / 2
    await store.write(lambda tx: tx.sessions.move(ran.id, Phase.RELEASING, now=later, ended=later))
    await store.write(lambda tx: tx.sessions.move(ran.id, Phase.COMPLETED, now=later))
    both = await store.read(lambda tx: tx.uses.ran(*period))
    await store.write(lambda tx: tx.sessions.delete(ran.id))
    assert await store.read(lambda tx: tx.uses.ran(*period)) == both
    assert [(one.person, one.ended, one.nodes) for one in both] == [("ann", later, 2), ("bob", None, 1)]
    assert [one.person for one in await store.read(lambda tx: tx.uses.ran(*period, person="ann"))] == ["ann"]
    assert await store.read(lambda tx: tx.uses.ran(*period, platform="anvil")) == []
    assert await store.read(lambda tx: tx.uses.ran(later + MINUTE, later + 2 * MINUTE, person="ann")) == []


def _at_keeling(person: str) -> Session:
    return a_session(a_set(person), an_offer(platform="keeling"))
