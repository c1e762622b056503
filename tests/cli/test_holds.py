"""Offers that are held, as someone meets them who tries things at a terminal with two cores."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.client import AsyncClient, Client
from tests.canned import ID, Said, a_yes, an_offer
from tests.cli.conftest import Serve, Type
from tests.cli.test_end_to_end import Person as AtTerminal
from tests.cli.test_end_to_end import Terminal
from tests.serving import Serving

SETTINGS = """\
[platforms.trial]
kind = "memory"
cores = 2
takes = "0.1s"
"""
PRICED = f"""\
{SETTINGS}
[prices]
core_hour = 3.0
"""
BOTH = ("--cores", "2", "--time", "2h")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a service with two cores."""
    yield from serve(tmp_path_factory.mktemp("two") / "home", SETTINGS)


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same, and its cores cost something."""
    yield from serve(tmp_path_factory.mktemp("priced") / "home", PRICED)


def serve(home: Path, settings: str) -> Iterator[Path]:
    """Run a service on these settings."""
    home.mkdir(parents=True)
    (home / "sublet.toml").write_text(settings)
    service = Serving(home)
    service.start()
    yield home
    service.stop()


def client_of(home: Path) -> Client:
    """The SDK's way to that service."""
    return Client(socket=home / "run" / "sublet.sock")


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """What is typed goes to that service, where nothing is held and nothing runs."""
    client = client_of(home)
    client.reject_all()
    for session in client.sessions(active=True):
        session.wait(30)
    monkeypatch.setenv("SUBLET_URL", f"unix://{home}/run/sublet.sock")
    yield client
    client.reject_all()


@pytest.mark.usefixtures("here")
def test_after_three_asks_a_run_starts_now(type_in: Type) -> None:
    for _ in range(3):
        assert "held until" in type_in("ask", *BOTH, "--", "true").err
    ran = type_in("run", *BOTH, "--", "echo", "hello")
    assert ran.code == 0
    assert "starts now" in ran.err


@pytest.mark.usefixtures("here")
def test_an_offer_of_the_first_ask_can_be_accepted_unless_it_gave_way(type_in: Type) -> None:
    narrow = type_in("ask", "-q", "--", "true").out.split()[0]
    type_in("ask", "--", "true")
    assert type_in("accept", narrow).code == 0
    wide = type_in("ask", "-q", *BOTH, "--", "true").out.split()[0]
    type_in("ask", *BOTH, "--", "true")
    refused = type_in("accept", wide)
    assert refused.code == 1
    assert "gave way to your later request" in refused.err
    assert "--keep-offers" in refused.err
    assert "gave way to a later request" in type_in("explain", wide).out


@pytest.mark.usefixtures("here")
def test_what_is_held_is_listed_named_and_given_back_with_one_command(type_in: Type) -> None:
    for _ in range(2):
        type_in("ask", "--", "true")
    assert len(type_in("offers", "-q").out.split()) == 2
    refused = type_in("ask", "--keep-offers", "--cores", "2", "--start", "within 5m", "--", "true")
    assert refused.code == 1
    assert "Your own 2 unaccepted offers hold 2 cores of trial until today " in refused.out.replace("tomorrow", "today")
    assert "possible: sublet reject --all" in refused.out
    as_json = json.loads(type_in("offers", "--json").out)
    assert [len(one["offers"]) for one in as_json["items"]] == [1, 1]
    later = type_in("ask", "--keep-offers", *BOTH, "--", "true")
    assert "Release your own offers with: sublet reject --all" in later.err
    type_in("reject", later.out.splitlines()[1].split()[0])
    waits = type_in("run", "--keep-offers", "--detach", "-q", *BOTH, "--", "true").out.strip()
    told = type_in("explain", waits).out
    assert "Your own 2 unaccepted offers hold 2 cores of trial" in told
    assert type_in("reject", "--all").out == "2 offers are given back.\n"
    assert type_in("reject", "--all").out == "Nothing was held for you.\n"
    assert type_in("offers").out == "Nothing is held for you.\n"
    assert "unaccepted" not in type_in("explain", waits).out


def test_reject_wants_offers_or_all_and_not_both(type_in: Type) -> None:
    assert type_in("reject").code == type_in("reject", "--all", "3f2a").code == 2


def test_run_gives_back_what_it_does_not_take(type_in: Type, priced: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_URL", f"unix://{priced}/run/sublet.sock")
    refused = type_in("run", *BOTH, "--", "true")
    assert refused.code == 1
    assert "12 EUR" in refused.err
    assert client_of(priced).open_offers() == []


@pytest.mark.parametrize("answer", ["n\n", "\x03"])
def test_run_gives_back_what_is_declined_at_the_prompt(priced: Path, tmp_path: Path, answer: str) -> None:
    with Terminal(AtTerminal(priced, tmp_path), "run", *BOTH, "--", "true") as terminal:
        terminal.reads_until("It costs 12 EUR. Go on?")
        assert len(client_of(priced).open_offers()) == 1
        assert terminal.types_until_it_ends(answer) != 0
    assert client_of(priced).open_offers() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_run_gives_back_its_offers_if_it_is_ended_at_the_prompt(priced: Path, tmp_path: Path, number: int) -> None:
    with Terminal(AtTerminal(priced, tmp_path), "run", *BOTH, "--", "true") as terminal:
        terminal.reads_until("It costs 12 EUR. Go on?")
        terminal._process.send_signal(number)
        assert terminal.ends() == 128 + number
    assert client_of(priced).open_offers() == []


def test_run_gives_back_its_offers_if_its_terminal_is_closed(priced: Path, tmp_path: Path) -> None:
    with Terminal(AtTerminal(priced, tmp_path), "run", *BOTH, "--", "true") as terminal:
        terminal.reads_until("It costs 12 EUR. Go on?")
        os.close(terminal._master)
        terminal._master = os.open(os.devnull, os.O_RDONLY)  # what is closed in the end
        terminal.ends()
    assert client_of(priced).open_offers() == []


def test_run_gives_back_its_offers_if_the_acceptance_is_refused(type_in: Type, canned: Serve) -> None:
    problem = {"code": "offer-expired", "detail": "The offer has expired.", "hint": "Ask again."}
    yes = a_yes(an_offer())
    service = canned(
        {
            "POST /v1/offersets": Said(yes),
            f"POST /v1/sessions/{ID}/accept": Said(problem, 409),
            f"DELETE /v1/offersets/{yes.id}": Said({"offers": 1}),
        }
    )
    assert type_in("run", "--", "true").code == 1
    assert [heard.method for heard in service.heard] == ["POST", "POST", "DELETE"]
    assert service.heard[0].target == "/v1/offersets?firm=true"


def test_a_program_gives_back_what_it_leaves(here: Client) -> None:
    with here.ask(run="true", cores=2, time="2h") as found:
        assert len(here.open_offers()) == 1
    assert here.open_offers() == []
    with pytest.raises(ValueError, match="changed my mind"), here.ask(run="true", cores=2, time="2h"):
        raise ValueError("changed my mind")
    assert here.open_offers() == []
    with here.ask(run="true") as found:
        session = found[0].accept()
    assert session.wait(30).phase == "COMPLETED"
    first = here.ask(run="true", cores=2, time="2h")
    assert len(here.ask(run="true", cores=2, start="within 5m", keep_offers=True)) == 0
    assert first.reject() == 1


@pytest.mark.anyio
async def test_a_program_that_awaits_gives_back_what_it_leaves(here: Client, home: Path) -> None:
    async with AsyncClient(socket=home / "run" / "sublet.sock") as client:
        async with await client.ask(run="true", cores=2, time="2h"):
            assert len(await client.open_offers()) == 1
        assert await client.open_offers() == []
        assert await client.reject_all() == 0
