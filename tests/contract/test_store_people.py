"""People, their identities, groups and codes, on each database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sublet.people.model.people import Group, Identity, Known, Role
from sublet.people.store.codes import Code
from sublet.people.store.tokens import Token
from sublet.store import Store

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ANNA = Known("anna@example.org", Role.PERSON, NOON)
CODE = Code("c1", ANNA.name, "192.0.2.1", "f" * 64, NOON, NOON + 10 * MINUTE)


def test_someone_is_found_by_any_of_their_identities(store: Store) -> None:
    store.write_sync(lambda tx: tx.people.add(ANNA))
    store.write_sync(lambda tx: tx.people.add_identity(Identity("system:expanse", "anna7", ANNA.name, NOON)))
    assert store.read_sync(lambda tx: tx.people.get(ANNA.name)) == ANNA
    assert store.read_sync(lambda tx: tx.people.find("email", ANNA.name)) == ANNA
    assert store.read_sync(lambda tx: tx.people.find("system:expanse", "anna7")) == ANNA
    assert store.read_sync(lambda tx: tx.people.find("system:delta", "anna7")) is None
    found = store.read_sync(lambda tx: tx.people.identities(ANNA.name))
    assert [(one.kind, one.value) for one in found] == [("email", ANNA.name), ("system:expanse", "anna7")]
    assert store.write_sync(lambda tx: tx.people.remove_identity(ANNA.name, "system:expanse", "anna7"))
    assert not store.write_sync(lambda tx: tx.people.remove_identity(ANNA.name, "system:expanse", "anna7"))
    assert store.read_sync(lambda tx: tx.people.find("system:expanse", "anna7")) is None


def test_people_are_listed_by_part_and_by_whether_they_are_blocked(store: Store) -> None:
    ben = Known("ben@example.org", Role.OPERATOR, NOON, by="root")
    for one in (ben, ANNA):
        store.write_sync(lambda tx, one=one: tx.people.add(one))
    store.write_sync(lambda tx: tx.people.set_blocked(ANNA.name, ""))
    store.write_sync(lambda tx: tx.people.set_seen(ben.name, NOON))
    assert [one.name for one in store.read_sync(lambda tx: tx.people.list())] == [ANNA.name, ben.name]
    assert store.read_sync(lambda tx: tx.people.list(Role.OPERATOR)) == [replace(ben, seen=NOON)]
    assert store.read_sync(lambda tx: tx.people.list(blocked=True)) == [replace(ANNA, blocked="")]
    assert [one.name for one in store.read_sync(lambda tx: tx.people.list(after=ANNA.name))] == [ben.name]
    store.write_sync(lambda tx: tx.people.set_blocked(ANNA.name, None))
    store.write_sync(lambda tx: tx.people.set_role(ANNA.name, Role.REVIEWER))
    assert store.read_sync(lambda tx: tx.people.get(ANNA.name)) == replace(ANNA, role=Role.REVIEWER)


def test_who_is_forgotten_leaves_no_identity_no_membership_and_no_token(store: Store) -> None:
    store.write_sync(lambda tx: tx.people.add(ANNA))
    store.write_sync(lambda tx: tx.groups.add(Group("hydro", NOON, "who model rivers")))
    assert store.write_sync(lambda tx: tx.groups.join("hydro", ANNA.name))
    assert not store.write_sync(lambda tx: tx.groups.join("hydro", ANNA.name))
    store.write_sync(lambda tx: tx.tokens.add(Token("t", ANNA.name, "laptop", NOON), "secret"))
    assert store.read_sync(lambda tx: tx.groups.of(ANNA.name)) == ("hydro",)
    store.write_sync(lambda tx: tx.people.remove(ANNA.name))
    assert store.read_sync(lambda tx: tx.people.find("email", ANNA.name)) is None
    assert store.read_sync(lambda tx: tx.tokens.check("secret", NOON)) is None
    assert store.read_sync(lambda tx: tx.groups.get("hydro")) == Group("hydro", NOON, "who model rivers")


def test_a_group_has_members_who_need_not_have_come(store: Store) -> None:
    store.write_sync(lambda tx: tx.groups.add(Group("hydro", NOON)))
    for name in ("carl@example.org", "anna@example.org"):
        store.write_sync(lambda tx, name=name: tx.groups.join("hydro", name))
    members = ("anna@example.org", "carl@example.org")
    assert store.read_sync(lambda tx: tx.groups.list()) == [Group("hydro", NOON, members=members)]
    assert store.write_sync(lambda tx: tx.groups.leave("hydro", "carl@example.org"))
    assert not store.write_sync(lambda tx: tx.groups.leave("hydro", "carl@example.org"))
    assert store.write_sync(lambda tx: tx.groups.remove("hydro"))
    assert not store.write_sync(lambda tx: tx.groups.remove("hydro"))
    assert store.read_sync(lambda tx: tx.groups.of("anna@example.org")) == ()


def test_an_address_has_one_code_at_a_time(store: Store) -> None:
    store.write_sync(lambda tx: tx.codes.add(CODE))
    newer = replace(CODE, id="c2", created=NOON + MINUTE, expires=NOON + 11 * MINUTE)
    store.write_sync(lambda tx: tx.codes.add(newer))
    assert store.read_sync(lambda tx: tx.codes.open(ANNA.name, NOON + 2 * MINUTE)) == newer
    assert store.write_sync(lambda tx: tx.codes.close(ANNA.name, NOON + 2 * MINUTE))
    assert not store.write_sync(lambda tx: tx.codes.close(ANNA.name, NOON + 2 * MINUTE))
    assert store.read_sync(lambda tx: tx.codes.open(ANNA.name, NOON + 2 * MINUTE)) is None


def test_a_code_is_tried_so_often_and_no_more(store: Store) -> None:
    store.write_sync(lambda tx: tx.codes.add(CODE))
    assert [store.write_sync(lambda tx: tx.codes.count_try("c1", 3)) for _ in range(5)] == [True] * 3 + [False] * 2
    assert not store.write_sync(lambda tx: tx.codes.count_try("", 3))


def test_codes_count_against_their_address_until_they_are_forgotten(store: Store) -> None:
    for number in range(3):
        one = replace(CODE, id=f"c{number}", created=NOON + number * MINUTE)
        store.write_sync(lambda tx, one=one: tx.codes.add(one))
    assert store.read_sync(lambda tx: tx.codes.since(ANNA.name, NOON)) == [
        (CODE.host, NOON + MINUTE),
        (CODE.host, NOON + 2 * MINUTE),
    ]
    assert store.read_sync(lambda tx: tx.codes.since("ben@example.org", NOON)) == []
    store.write_sync(lambda tx: tx.codes.forget(NOON + MINUTE))
    assert store.read_sync(lambda tx: tx.codes.since(ANNA.name, NOON - MINUTE)) == [(CODE.host, NOON + 2 * MINUTE)]


def test_tries_are_counted_and_codes_used_across_processes(open_store: Callable[[], Store]) -> None:
    one, other = open_store(), open_store()
    one.write_sync(lambda tx: tx.codes.add(CODE))
    tried = [store.write_sync(lambda tx: tx.codes.count_try("c1", 3)) for store in (one, other, one, other)]
    assert tried == [True, True, True, False]
    closed = [store.write_sync(lambda tx: tx.codes.close(ANNA.name, NOON)) for store in (one, other)]
    assert closed == [True, False]
