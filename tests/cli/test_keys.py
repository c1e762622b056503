"""A script that is run again with its keys starts nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.client import Client
from tests.canned import ID, Said, a_session, a_yes, an_offer
from tests.cli.conftest import Serve, Type
from tests.cli.test_holds import SETTINGS, client_of, serve


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a service of its own."""
    yield from serve(tmp_path_factory.mktemp("keys") / "home", SETTINGS)


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """What is typed goes to that service."""
    monkeypatch.setenv("SUBLET_URL", f"unix://{home}/run/sublet.sock")
    return client_of(home)


def test_a_run_that_is_typed_again_with_its_key_is_the_same_session(type_in: Type, here: Client) -> None:
    typed = ("run", "--key", "night 1", "--detach", "--quiet", "--", "true")
    first, second = type_in(*typed), type_in(*typed)
    assert (first.code, second.code) == (0, 0)
    assert first.out == second.out != ""
    here.session(first.out.strip()).wait(30)
    late = type_in("run", "--key", "night 1", "--", "true")
    assert late.code == 0
    assert f"This key was used before, for the session {first.out.strip()}" in late.err
    other = type_in("run", "--key", "night 1", "--", "false")
    assert other.code == 1
    assert "The idempotency key night 1 was already used for another request." in other.err
    assert len([session for session in here.sessions() if session.phase not in ("OFFERED", "REJECTED")]) == 1


@pytest.mark.usefixtures("here")
def test_an_answer_is_the_same_under_its_key(type_in: Type) -> None:
    typed = ("ask", "--key", "a", "--quiet", "--", "true")
    assert type_in(*typed).out == type_in(*typed).out != ""


@pytest.mark.usefixtures("here")
def test_a_key_that_says_nothing_is_refused(type_in: Type) -> None:
    refused = type_in("run", "--key", "", "--", "true")
    assert refused.code == 2
    assert "key is empty" in refused.err


@pytest.mark.parametrize(
    ("words", "address"),
    [
        (("sweep", "--grid", "a=1,2", "-d", "--", "echo", "{a}"), "POST /v1/offersets"),
        (("again", ID, "-d"), f"POST /v1/sessions/{ID}/again"),
        (("app", "run", "summa", "-d"), "POST /v1/offersets/apps/summa"),
    ],
)
def test_whatever_starts_something_sends_its_key(
    type_in: Type, canned: Serve, words: tuple[str, ...], address: str
) -> None:
    answers = {address: Said(a_yes(an_offer(phase="RUNNING"))), f"GET /v1/sessions/{ID}": Said(a_session())}
    service = canned(answers)
    at = words.index("-d")
    assert type_in(*words[:at], "--key", "mine", *words[at:]).code == 0
    assert [heard.method for heard in service.heard] == ["POST", "GET"], "nothing is accepted again"
    assert service.heard[0].headers["Idempotency-Key"] == "mine"
