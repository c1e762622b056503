"""A script's variable that is unset is named as what it is, and never stands for everything."""

from __future__ import annotations

import pytest

from sublet import Client
from sublet.kernel.errors import BadRequest
from sublet.people.calls.people import session_token
from sublet.people.views.people import TokenList, TokenView
from tests.canned import ID, NOW, Said
from tests.cli.conftest import Serve, Type


@pytest.mark.parametrize("name", ["", " "])
@pytest.mark.parametrize(
    "command",
    ["status", "logs", "result", "result get", "explain", "cancel", "delete", "accept", "reject"],
)
def test_an_empty_name_is_refused_and_nothing_is_sent(type_in: Type, canned: Serve, command: str, name: str) -> None:
    service = canned({})
    typed = type_in(*command.split(), name)
    assert (typed.code, service.heard) == (2, []), typed.err
    assert typed.err.startswith("error: A name or an id is empty.\n")
    assert "a variable may be unset" in typed.err


def test_an_empty_name_revokes_no_token_even_if_there_is_only_one(type_in: Type, canned: Serve) -> None:
    token = TokenView(id=ID, person="ann", note="laptop", created=NOW, expires=None, used=None)
    service = canned({"GET /v1/tokens": Said(TokenList(items=(token,)))})
    typed = type_in("token", "revoke", "")
    assert (typed.code, service.heard) == (2, []), typed.err


def test_so_it_is_in_python(canned: Serve) -> None:
    service = canned({})
    with Client() as client, pytest.raises(BadRequest, match="is empty"):
        client.session("")
    with pytest.raises(BadRequest, match="is empty"):
        session_token(" ")
    assert service.heard == []


WIDER = [  # each would otherwise be more than what was meant: all platforms, no limit, everybody's
    (["cancel", "--person", "ben@example.edu", "--platform", "", "--yes"], "--platform"),
    (["ps", "--everyone", "--phase", " "], "--phase"),
    (["token", "make", "--scope", ""], "--scope"),
    (["token", "--scope", ""], "--scope"),
    (["token", "make", "--session", ""], "--session"),
    (["token", "make", "--note", "", "--expires", ""], "--expires"),
    (["rule", "add", "allow", "ben", "--platform", "here", "--cores", ""], "--cores"),
    (["rule", "add", "allow", "ben", "--platform", "here", "--account", ""], "--account"),
    (["access", "grant", "3f2a", "--expires", ""], "--expires"),
    (["budget", "add", "ben", "10", "--platform", ""], "--platform"),
    (["archive", "export", "--person", "", "x.csv"], "--person"),
    (["platform", "drain", "here", "--until", ""], "--until"),
    (["annex", "drain", "example", "--node", ""], "--node"),
    (["run", "--queue", "", "--", "true"], "--queue"),
]


@pytest.mark.parametrize(("words", "option"), WIDER, ids=[" ".join(words) for words, _ in WIDER])
def test_an_empty_option_widens_nothing(type_in: Type, canned: Serve, words: list[str], option: str) -> None:
    service = canned({})
    typed = type_in(*words)
    assert (typed.code, service.heard) == (2, []), typed.err
    assert typed.err.startswith(f"error: The value of {option} is empty.\n")
    assert "a variable may be unset" in typed.err


@pytest.mark.parametrize(
    "command",
    [
        *("events", "annex status", "logout", "login", "app init", "app check", "cache ls"),
        *("result get 3f2a", "result put 3f2a s3://bucket/x", "cache rm x", "notify add", "upload send"),
    ],
)
def test_an_empty_name_is_not_a_name_left_out(type_in: Type, canned: Serve, command: str) -> None:
    service = canned({})
    typed = type_in(*command.split(), "")
    assert (typed.code, service.heard) == (2, []), typed.err
    assert typed.err.startswith("error: A name or an id is empty.\n")


@pytest.mark.parametrize(
    "words",
    [
        ("token", "make", "--note", ""),
        ("pledge", "edit", "ml", "--when", "", "--title", ""),
        ("account", "change", "keeling", "--queue", "", "--description", ""),
        ("run", "--", "echo", ""),
    ],
    ids=" ".join,
)
def test_a_text_may_be_empty_and_so_may_what_is_to_be_removed(
    type_in: Type, canned: Serve, words: tuple[str, ...]
) -> None:
    canned({})
    assert "empty" not in type_in(*words).err
