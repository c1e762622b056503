"""A token's scope: words that include one another, and a table of addresses that leaves none out."""

from __future__ import annotations

import pytest

from sublet.api.scopes import CHANGES, OF_ONE_SESSION, find_needed
from sublet.doors.ivoa import api as broker
from sublet.kernel.errors import BadScope
from sublet.people.model.scopes import LADDER, Scope, allows, read_scope, within
from sublet.server.app import NOUNS


def addresses() -> list[tuple[str, str]]:
    """Every method and address, as the routes are written."""
    routes = [*broker.ROUTES, *(route for noun in NOUNS for route in noun.router.routes)]
    return [(method, route.path) for route in routes for method in route.methods or () if method != "HEAD"]


def test_words_include_those_before_them() -> None:
    for strong, held in enumerate(LADDER):
        for weak, wanted in enumerate(LADDER):
            assert allows([held], wanted) == (weak <= strong)
            assert within([wanted], [held]) == (weak <= strong)
    assert all(allows([], word) for word in LADDER)


def test_all_is_within_nothing_less_than_all() -> None:
    assert within([], [])
    assert within([], ["manage"])
    assert not within([], ["run"])
    assert not within(["manage"], ["read", "run"])


def test_words_are_kept_in_their_order_once() -> None:
    assert read_scope(["run,read", "read"]) == ("read", "run")
    assert read_scope([]) == ()
    with pytest.raises(BadScope, match="write"):
        read_scope(["read write"])


@pytest.mark.parametrize("words", [[""], [" "], ["read", ""], [","]])
def test_an_empty_word_is_not_taken_for_all(words: list[str]) -> None:
    with pytest.raises(BadScope, match="An empty text is not a scope"):
        read_scope(words)


def test_looking_needs_read_and_changing_more() -> None:
    for method, path in addresses():
        assert (find_needed(method, path) is Scope.READ) == (method == "GET"), (method, path)


def test_what_decides_on_others_needs_manage() -> None:
    changing = {path for method, path in addresses() if method != "GET" and find_needed(method, path) is Scope.MANAGE}
    assert {"/v1/tokens", "/v1/tokens/{id}"} <= changing
    assert find_needed("POST", "/v1/sessions-of-others") is Scope.MANAGE
    assert find_needed("POST", "/anything/new") is Scope.MANAGE


def test_the_tables_name_addresses_that_there_are() -> None:
    there = addresses()
    assert set(there) >= OF_ONE_SESSION
    for start in CHANGES:
        assert any(path == start or path.startswith(f"{start}/") for _, path in there), start
