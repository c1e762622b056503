"""Programs that ask for JSON are told errors in JSON, with the same exit codes."""

from __future__ import annotations

import json

import pytest

from tests.canned import Said
from tests.cli.conftest import Serve, Type

PROBLEM = {"code": "ambiguous", "detail": "3f2 could mean several sessions: a; b.", "hint": "Type more of its id."}


@pytest.mark.parametrize(
    "words", [("--json", "status", "3f2"), ("status", "3f2", "--json"), ("status", "--json", "3f2")]
)
def test_an_error_is_json_wherever_json_was_asked_for(words: tuple[str, ...], type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/sessions/3f2": Said(PROBLEM, 409)})
    plain, typed = type_in("status", "3f2"), type_in(*words)
    said = json.loads(typed.err.splitlines()[-1])
    assert {name: said[name] for name in PROBLEM} == PROBLEM
    assert (said["type"], said["status"], said["exit_code"]) == ("urn:sublet:problem:ambiguous", 409, 2)
    assert (typed.code, typed.out) == (plain.code, "") == (2, "")
    assert plain.err == "error: 3f2 could mean several sessions: a; b.\n\nhint: Type more of its id.\n"


def test_a_mistake_in_what_was_typed_is_json_too(type_in: Type) -> None:
    for words in (("ps", "--json", "--limit", "x"), ("--json", "pss"), ("status", "--json")):
        typed = type_in(*words)
        said = json.loads(typed.err)
        assert (typed.code, said["code"], said["exit_code"]) == (2, "usage", 2)
        assert said["detail"]
        assert "--help" in said["hint"]


def test_a_service_that_is_away_is_json_too(type_in: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_URL", "http://127.0.0.1:1")
    typed = type_in("ps", "--json")
    assert (typed.code, json.loads(typed.err)["code"]) == (3, "service-unreachable")


def test_json_that_is_an_argument_of_the_command_is_not_ours(type_in: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_URL", "http://127.0.0.1:1")
    assert type_in("run", "--", "jq", "--json").err.startswith("error: ")
