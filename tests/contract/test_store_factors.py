"""Second factors as they are stored: a step is used once, and tries run out and come back."""

from __future__ import annotations

from datetime import timedelta

from sublet.people.model.people import Known, Role
from sublet.store import Store, Token
from tests.contract.stored import HOUR, MINUTE, NOON

ANN = "ann@example.org"
TEN = timedelta(minutes=10)


def begun(store: Store) -> None:
    store.write_sync(lambda tx: tx.people.add(Known(ANN, Role.PERSON, NOON)))
    store.write_sync(lambda tx: tx.factors.put(ANN, "sealed", NOON))


def test_it_counts_once_confirmed_and_goes_with_its_person(store: Store) -> None:
    begun(store)
    assert not store.read_sync(lambda tx: tx.factors.on(ANN))
    store.write_sync(lambda tx: tx.factors.confirm(ANN, ("h1", "h2"), NOON + MINUTE))
    found = store.read_sync(lambda tx: tx.factors.get(ANN))
    assert found is not None
    assert (found.secret, found.confirmed, found.recovery) == ("sealed", NOON + MINUTE, ("h1", "h2"))
    store.write_sync(lambda tx: tx.factors.put(ANN, "another", NOON))
    assert not store.read_sync(lambda tx: tx.factors.on(ANN))
    assert store.write_sync(lambda tx: tx.factors.seal(ANN, "another", "anew"))
    assert not store.write_sync(lambda tx: tx.factors.seal(ANN, "another", "late"))
    assert store.read_sync(lambda tx: tx.factors.secrets()) == {ANN: "anew"}
    store.write_sync(lambda tx: tx.people.remove(ANN))
    assert store.read_sync(lambda tx: tx.factors.get(ANN)) is None
    assert not store.write_sync(lambda tx: tx.factors.remove(ANN))


def test_a_step_and_all_before_it_count_once(store: Store) -> None:
    begun(store)
    used = [store.write_sync(lambda tx, step=step: tx.factors.use(ANN, step)) for step in (7, 7, 6, 8, 8)]
    assert used == [True, False, False, True, False]


def test_a_recovery_code_counts_once(store: Store) -> None:
    begun(store)
    store.write_sync(lambda tx: tx.factors.confirm(ANN, ("h1", "h2"), NOON))
    found = store.read_sync(lambda tx: tx.factors.get(ANN))
    assert found is not None
    assert not store.write_sync(lambda tx: tx.factors.recover(found, "h3"))
    assert store.write_sync(lambda tx: tx.factors.recover(found, "h1"))
    assert not store.write_sync(lambda tx: tx.factors.recover(found, "h1"))  # who saw it before it was used


def test_tries_run_out_come_back_and_are_forgiven(store: Store) -> None:
    begun(store)

    def tries(now: timedelta) -> bool:
        return store.write_sync(lambda tx: tx.factors.try_once(ANN, 3, TEN, NOON + now))

    assert [tries(MINUTE) for _ in range(5)] == [True, True, True, False, False]
    assert tries(11 * MINUTE)
    assert [tries(12 * MINUTE) for _ in range(3)] == [True, True, False]
    store.write_sync(lambda tx: tx.factors.use(ANN, 1))
    assert tries(12 * MINUTE)


def test_a_tokens_last_use_is_kept_and_never_goes_back(store: Store) -> None:
    store.write_sync(lambda tx: tx.tokens.add(Token("t1", ANN, "", NOON, use="session", session="s1"), "secret"))
    for now, used in ((HOUR, HOUR), (MINUTE, HOUR), (2 * HOUR, 2 * HOUR)):
        store.write_sync(lambda tx, now=now: tx.tokens.use("t1", NOON + now))
        (found,) = store.read_sync(lambda tx: tx.tokens.of_session("s1"))
        assert found.used == NOON + used
