"""Where commands go: to what is named, to the gateway that one is signed in to, or to one's own service."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sublet.client.address import find_address, gateway_at
from sublet.client.gateways import current, forget, keep, login_to
from sublet.kernel.errors import BadRequest
from sublet.kernel.home import Home
from sublet.kernel.kept_logins import KeptLogin

URL = "https://gateway.example.org:443"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path / "home"))
    for name in ("SUBLET_URL", "SUBLET_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return Home(str(tmp_path / "home"))


def test_commands_go_to_the_gateway_that_was_signed_in_to_last(home: Home) -> None:
    assert find_address().socket == home.socket
    keep(home, URL, "first")
    keep(home, "http://localhost:8080", "second")
    assert (find_address().text, find_address().token) == ("http://localhost:8080", "second")
    assert find_address("https://Gateway.example.org/").token == "first"
    forget(home, "http://localhost:8080")
    assert find_address().socket == home.socket
    assert login_to(home, URL) == KeptLogin("first")


def test_what_is_named_counts_more(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(home, URL, "kept")
    monkeypatch.setenv("SUBLET_URL", "own")
    assert find_address().socket == home.socket
    monkeypatch.setenv("SUBLET_URL", "https://other.example.org")
    assert (find_address().host, find_address().token) == ("other.example.org", "")
    monkeypatch.setenv("SUBLET_TOKEN", "given")
    assert find_address("https://gateway.example.org").token == "given"
    assert find_address(socket="/run/other.sock").socket == "/run/other.sock"


def test_a_token_is_its_owners_alone_and_is_never_sent_to_another_gateway(home: Home) -> None:
    keep(home, URL, "secret")
    directory = Path(home.gateways)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}
    for other in ("http://gateway.example.org", "https://gateway.example.org:8443", "https://gateway.example.org/sub"):
        assert find_address(other).token == ""


def test_a_gateway_has_one_name_however_it_is_written(home: Home) -> None:
    assert gateway_at("https://GATEWAY.example.org/").text == URL
    assert gateway_at("https://gateway.example.org/sub/").text == f"{URL}/sub"
    with pytest.raises(BadRequest):
        gateway_at("gateway.example.org")
    assert current(home) == ""
