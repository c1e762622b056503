"""A script's variable that is unset is named as what it is, and never stands for everything."""

from __future__ import annotations

import pytest

from sublet import Client
from sublet.kernel.errors import BadRequest
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
    assert (typed.code, [heard.method for heard in service.heard]) == (2, ["GET"]), typed.err


def test_so_it_is_in_python(canned: Serve) -> None:
    service = canned({})
    with Client() as client, pytest.raises(BadRequest, match="is empty"):
        client.session("")
    assert service.heard == []
