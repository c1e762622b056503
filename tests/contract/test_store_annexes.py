"""Annexes, leases, pilots and templates are kept, and each thing that may happen once happens once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sublet.annexes.model.annex import Annex, Details, Lease, Pilot, Template
from sublet.store import Store
from tests.contract.stored import HOUR, MINUTE, NOON

ANNEX = Annex("a1", "alice", "example", NOON)
DETAILS = Details("expanse", "compute", "abc123", nodes=2, lifetime=timedelta(hours=1), memory=2**33)


def leased(store: Store, number: int, annex: str = "a1", session: str = "") -> Lease:
    lease = Lease(f"l{number}", annex, number, DETAILS, NOON + number * MINUTE, session)
    store.write_sync(lambda tx: tx.leases.add(lease))
    return lease


@pytest.fixture
def annex(store: Store) -> Annex:
    store.write_sync(lambda tx: tx.annexes.add(ANNEX))
    return ANNEX


def test_an_annex_is_its_persons_by_name(store: Store, annex: Annex) -> None:
    assert store.read_sync(lambda tx: tx.annexes.find_named("alice", "example")) == annex
    assert store.read_sync(lambda tx: tx.annexes.find_named("bob", "example")) is None
    assert store.read_sync(lambda tx: tx.annexes.get("a1")) == annex
    assert store.read_sync(lambda tx: tx.annexes.list("alice")) == [annex]
    assert store.read_sync(lambda tx: tx.annexes.list()) == [annex]


def test_an_annex_is_renamed_opened_and_shared(store: Store, annex: Annex) -> None:
    changed = replace(annex, name="other", open=True, guests=("bob", "käthe"))
    store.write_sync(lambda tx: tx.annexes.change(changed))
    assert store.read_sync(lambda tx: tx.annexes.get("a1")) == changed


def test_leases_are_numbered_and_kept(store: Store, annex: Annex) -> None:
    assert store.read_sync(lambda tx: tx.leases.next_number("a1")) == 1
    first, second = leased(store, 1), leased(store, 2)
    assert store.read_sync(lambda tx: tx.leases.next_number("a1")) == 3
    assert store.read_sync(lambda tx: tx.leases.list("a1")) == [first, second]
    assert store.read_sync(lambda tx: tx.leases.latest("alice")) == second
    assert store.read_sync(lambda tx: tx.leases.latest("bob")) is None


def test_a_lease_knows_its_session_and_ends_once(store: Store, annex: Annex) -> None:
    lease = leased(store, 1)
    store.write_sync(lambda tx: tx.leases.send("l1", "s1"))
    sent = replace(lease, session="s1")
    assert store.read_sync(lambda tx: tx.leases.of_session("s1")) == sent
    assert store.read_sync(lambda tx: tx.leases.live()) == [sent]
    assert store.write_sync(lambda tx: tx.leases.end("l1", NOON + HOUR, "its nodes are gone"))
    assert not store.write_sync(lambda tx: tx.leases.end("l1", NOON + 2 * HOUR, "again"))
    assert store.read_sync(lambda tx: tx.leases.live()) == []
    assert store.read_sync(lambda tx: tx.leases.get("l1")) == replace(sent, ended=NOON + HOUR, why="its nodes are gone")


def test_a_nodes_place_is_claimed_once(store: Store, annex: Annex) -> None:
    leased(store, 1)
    pilot = Pilot("l1", 0, NOON, "c1", seen=NOON, facts={"cores": 4})
    assert store.write_sync(lambda tx: tx.pilots.claim(pilot))
    assert not store.write_sync(lambda tx: tx.pilots.claim(replace(pilot, node="c2")))
    assert store.read_sync(lambda tx: tx.pilots.list("l1")) == [pilot]
    store.write_sync(lambda tx: tx.pilots.see("l1", 0, NOON + MINUTE))
    assert store.write_sync(lambda tx: tx.pilots.end("l1", 0, NOON + HOUR, "idle"))
    assert not store.write_sync(lambda tx: tx.pilots.end("l1", 0, NOON + HOUR, "lost"))
    gone = replace(pilot, seen=NOON + MINUTE, ended=NOON + HOUR, why="idle")
    assert store.read_sync(lambda tx: tx.pilots.get("l1", 0)) == gone


def test_a_template_is_saved_over_and_removed(store: Store) -> None:
    template = Template("alice", "big", DETAILS, NOON)
    store.write_sync(lambda tx: tx.templates.save(template))
    other = replace(template, details=replace(DETAILS, nodes=8), changed=NOON + HOUR)
    store.write_sync(lambda tx: tx.templates.save(other))
    assert store.read_sync(lambda tx: tx.templates.list("alice")) == [other]
    assert store.read_sync(lambda tx: tx.templates.get("bob", "big")) is None
    assert store.write_sync(lambda tx: tx.templates.remove("alice", "big"))
    assert not store.write_sync(lambda tx: tx.templates.remove("alice", "big"))
