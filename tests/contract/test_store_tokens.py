"""A token is known by its secret, which nobody can read back."""

from __future__ import annotations

from sublet.store import Store, Token
from tests.contract.stored import HOUR, MINUTE, NOON, rows

TOKEN = Token("t1", "alice", "laptop", NOON, NOON + HOUR)


def test_a_secret_is_its_persons_until_it_expires(store: Store) -> None:
    store.write_sync(lambda tx: tx.tokens.add(TOKEN, "secret"))
    assert store.read_sync(lambda tx: tx.tokens.check("secret", NOON)) == TOKEN
    assert store.read_sync(lambda tx: tx.tokens.check("secret", NOON + HOUR - MINUTE)) == TOKEN
    assert store.read_sync(lambda tx: tx.tokens.check("secret", NOON + HOUR)) is None
    assert store.read_sync(lambda tx: tx.tokens.check("Secret", NOON)) is None
    assert store.read_sync(lambda tx: tx.tokens.check("\ud800\0", NOON)) is None


def test_a_token_without_an_end_lasts(store: Store) -> None:
    forever = Token("t2", "bob", "server", NOON, None, operator=True)
    store.write_sync(lambda tx: tx.tokens.add(forever, "other"))
    assert store.read_sync(lambda tx: tx.tokens.check("other", NOON + 100000 * HOUR)) == forever


def test_the_secret_is_not_stored(store: Store, store_url: str) -> None:
    store.write_sync(lambda tx: tx.tokens.add(TOKEN, "secret"))
    assert "secret" not in str(rows(store_url, "SELECT * FROM tokens"))


def test_a_person_lists_and_revokes_only_their_own(store: Store) -> None:
    store.write_sync(lambda tx: tx.tokens.add(TOKEN, "secret"))
    store.write_sync(lambda tx: tx.tokens.add(Token("t2", "bob", "b", NOON), "other"))
    assert store.read_sync(lambda tx: tx.tokens.list("alice")) == [TOKEN]
    assert not store.write_sync(lambda tx: tx.tokens.revoke("t1", "bob"))
    assert store.write_sync(lambda tx: tx.tokens.revoke("t1", "alice"))
    assert store.read_sync(lambda tx: tx.tokens.check("secret", NOON)) is None
    assert store.read_sync(lambda tx: tx.tokens.list("alice")) == []


def test_tokens_that_have_expired_can_be_forgotten(store: Store) -> None:
    for name, expires in (("t1", NOON), ("t2", NOON + HOUR), ("t3", None)):
        token = Token(name, "alice", "", NOON, expires)
        store.write_sync(lambda tx, token=token: tx.tokens.add(token, token.id))
    store.write_sync(lambda tx: tx.tokens.add(Token("t4", "bob", "", NOON, NOON), "other"))
    store.write_sync(lambda tx: tx.tokens.forget("alice", NOON))
    assert [one.id for one in store.read_sync(lambda tx: tx.tokens.list("alice"))] == ["t2", "t3"]
    assert [one.id for one in store.read_sync(lambda tx: tx.tokens.list("bob"))] == ["t4"]
