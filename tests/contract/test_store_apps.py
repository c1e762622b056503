"""Apps in the store, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sublet.apps.model.app import App, Version, VersionState
from sublet.people.model.people import Known, Role
from sublet.store import Store
from tests.contract.stored import NOON

P = VersionState
FIRST = Version(
    id="7b0c3f0e-0000-4000-8000-000000000001",
    app="flood",
    number=1,
    repository="https://example.org/flood",
    branch="main",
    commit="1" * 40,
    tree="a" * 64,
    manifest={"format": 1, "name": "flood", "stages": []},
    manifest_hash="b" * 64,
    image="docker://ghcr.io/ann/flood",
    digest="sha256:" + "c" * 64,
    state=P.PROPOSED,
    proposed=NOON,
    proposed_by="ann@example.org",
    author="Ann",
    subject="Begin; ünd \"so\" 'on'",
    findings=("flood.sh: warning: it is binary.",),
)


def test_versions_are_kept_as_they_are_and_decided_on_once(store: Store) -> None:
    second = replace(FIRST, id=FIRST.id[:-1] + "2", number=2, tree="d" * 64)
    for version in (FIRST, second):
        if version is FIRST:
            store.write_sync(lambda tx: tx.apps.add(App("flood", "ann@example.org", FIRST.repository, NOON)))
        store.write_sync(lambda tx, one=version: tx.apps.add_version(one))  # type: ignore[misc]
    assert store.read_sync(lambda tx: tx.apps.version(FIRST.id)) == FIRST
    assert [one.number for one in store.read_sync(lambda tx: tx.apps.versions("flood"))] == [2, 1]
    assert store.read_sync(lambda tx: (tx.apps.next_number("flood"), tx.apps.next_number("new"))) == (3, 1)
    assert store.read_sync(lambda tx: tx.apps.count_open("ann@example.org")) == 2
    later = NOON + timedelta(days=1)

    def decide(to: VersionState, when: VersionState) -> bool:
        return store.write_sync(lambda tx: tx.apps.decide(FIRST.id, to, (when,), now=later, by="rae", why="fine"))

    assert [decide(P.APPROVED, P.PROPOSED), decide(P.REFUSED, P.PROPOSED), decide(P.REVOKED, P.APPROVED)] == [
        True,
        False,
        True,
    ]
    found = store.read_sync(lambda tx: tx.apps.version(FIRST.id))
    assert found == replace(FIRST, state=P.REVOKED, decided=later, decided_by="rae", why="fine")
    trees = store.read_sync(lambda tx: (tx.apps.trees(NOON), tx.apps.trees(later + timedelta(days=1))))
    assert trees == ({FIRST.tree, second.tree}, {second.tree})
    assert store.read_sync(lambda tx: tx.apps.newest("flood")) == second
    assert store.read_sync(lambda tx: tx.apps.newest("drought")) is None


@pytest.mark.parametrize("role", list(Role))
def test_those_who_decide_are_told(store: Store, role: Role) -> None:
    store.write_sync(lambda tx: tx.people.add(Known("rae@example.org", role, NOON)))
    told = store.read_sync(lambda tx: tx.apps.reviewers())
    assert told == ([] if role is Role.PERSON else ["rae@example.org"])
