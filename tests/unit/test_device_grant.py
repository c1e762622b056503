"""Signing in by a code of an IAM: how it is asked after, what is kept, and how it is renewed."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.kernel.device_grant import (
    DeviceCode,
    Endpoints,
    IssuerClient,
    await_device_grant,
    begin_device_grant,
    find_endpoints,
)
from sublet.kernel.errors import NotConfirmed, NotSignedIn, ProviderUnreachable
from sublet.kernel.home import Home
from sublet.kernel.kept_logins import KeptLogin, find_token, keep_login, load_login, read_grant, renew_login
from sublet.people.cli.device_login import describe_code, give_back
from tests.iam import AUDIENCE, Iam, iam_server

SERVICE = "https://broker.example.org:443"


class Clock:
    """A clock that goes on only while someone waits."""

    def __init__(self) -> None:
        self.seconds, self.waits = 0.0, list[float]()

    def now(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds


@pytest.fixture(scope="module")
def running() -> Iterator[Iam]:
    with iam_server() as server:
        yield server


@pytest.fixture
def iam(running: Iam) -> Iam:
    running.is_down, running.code = False, {}
    for known in (running.forms, running.replies, running.refreshing):
        known.clear()
    return running


def client_of(iam: Iam) -> IssuerClient:
    return IssuerClient("iam", iam.issuer, "cli", ("openid",), audience=AUDIENCE, audience_parameter="audience")


def begin(iam: Iam) -> tuple[IssuerClient, Endpoints, DeviceCode]:
    client = client_of(iam)
    endpoints = find_endpoints(client)
    return client, endpoints, begin_device_grant(client, endpoints)


def sign_in(iam: Iam) -> KeptLogin:
    client, endpoints, code = begin(iam)
    clock = Clock()
    kept = KeptLogin("", 0, "", "iam", "cli", endpoints.token, endpoints.revocation, client.target)
    return read_grant(kept, await_device_grant(client, endpoints, code, clock.wait, clock.now))


def test_a_code_is_asked_after_as_often_as_the_issuer_wants(iam: Iam) -> None:
    client, endpoints, code = begin(iam)
    code = replace(code, interval=5.0)
    iam.replies = ["authorization_pending", "slow_down", "authorization_pending"]
    clock = Clock()
    answer = await_device_grant(client, endpoints, code, clock.wait, clock.now)
    assert clock.waits == [5.0, 5.0, 10.0, 10.0]
    assert answer["access_token"].count(".") == 2
    asked = [form for path, form in iam.forms if path == "/token"]
    assert {form["device_code"] for form in asked} == {"secret-of-device"}
    assert {form["audience"] for form in asked} == {AUDIENCE}


@pytest.mark.parametrize(("error", "words"), [("access_denied", "declined"), ("expired_token", "in time")])
def test_who_declines_or_is_late_is_not_signed_in(iam: Iam, error: str, words: str) -> None:
    client, endpoints, code = begin(iam)
    iam.replies, clock = ["authorization_pending", error], Clock()
    with pytest.raises(NotConfirmed, match=words):
        await_device_grant(client, endpoints, code, clock.wait, clock.now)


def test_a_code_that_nobody_types_is_given_up_when_it_expires(iam: Iam) -> None:
    client, endpoints, code = begin(iam)
    iam.replies, clock = ["authorization_pending"] * 1000, Clock()
    with pytest.raises(NotConfirmed, match="in time"):
        await_device_grant(client, endpoints, replace(code, interval=5.0, seconds=60.0), clock.wait, clock.now)
    assert clock.seconds <= 60


def test_an_issuer_that_falls_silent_is_asked_less_often(iam: Iam) -> None:
    client, endpoints, code = begin(iam)
    iam.is_down, clock = True, Clock()
    with pytest.raises(NotConfirmed, match="in time"):
        await_device_grant(client, endpoints, replace(code, interval=5.0, seconds=120.0), clock.wait, clock.now)
    assert clock.waits == [5.0, 10.0, 20.0, 40.0]


def test_any_other_refusal_ends_it_in_the_issuers_words(iam: Iam) -> None:
    client, endpoints, code = begin(iam)
    iam.replies, clock = ["unauthorized_client"], Clock()
    with pytest.raises(NotConfirmed, match="unauthorized_client"):
        await_device_grant(client, endpoints, code, clock.wait, clock.now)


def test_an_issuer_that_is_another_or_has_no_codes_is_not_asked(iam: Iam) -> None:
    with pytest.raises(NotConfirmed, match="calls itself"):
        find_endpoints(replace(client_of(iam), issuer=iam.issuer.rstrip("/")))
    with pytest.raises(ProviderUnreachable, match="no good address"):
        find_endpoints(replace(client_of(iam), issuer="http://iam.example.org/"))
    with pytest.raises(ProviderUnreachable, match="no good address"):
        find_endpoints(replace(client_of(iam), device_endpoint="http://elsewhere.example.org/device"))


def test_what_is_shown_fits_a_terminal_and_nothing_in_it_is_obeyed_by_one(iam: Iam) -> None:
    client, endpoints, code = begin(iam)
    lines = describe_code(client, code)
    assert "  WDJB-MJHT" in lines
    assert max(map(len, lines)) <= 80
    assert "secret-of-device" not in "\n".join([*lines, repr(code)])
    iam.code = {"user_code": "A\x1b[31mB", "verification_uri": "https://x\r\n.example"}
    hostile = begin_device_grant(client, endpoints)
    assert (hostile.user_code, hostile.page) == ("A?[31mB", "https://x??.example")


def test_a_login_is_its_owners_alone_and_says_nothing_of_its_tokens(iam: Iam, tmp_path: Path) -> None:
    home, login = Home(str(tmp_path / "home")), sign_in(iam)
    keep_login(home, SERVICE, login)
    assert load_login(home, SERVICE) == login
    assert stat.S_IMODE(Path(home.gateways).stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in Path(home.gateways).iterdir()} == {0o600}
    assert login.access not in repr(login)
    assert login.refresh not in repr(login)


def test_a_token_is_renewed_before_it_expires_and_once_for_all_who_need_it(iam: Iam, tmp_path: Path) -> None:
    home, login = Home(str(tmp_path / "home")), sign_in(iam)
    keep_login(home, SERVICE, login)
    assert find_token(home, "https://broker.example.org/") == login.access
    keep_login(home, SERVICE, replace(login, expires=time.time() + 10))
    tokens: list[str] = []
    threads = [
        threading.Thread(target=lambda: tokens.append(find_token(home, "https://broker.example.org"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens)) == 1
    assert tokens[0] not in ("", login.access)
    asked = [form for _, form in iam.forms if form.get("grant_type") == "refresh_token"]
    assert len(asked) == 1, "each refresh token counts once"
    renewed = load_login(home, SERVICE)
    assert renewed
    assert renewed.refresh != login.refresh


def test_a_login_that_its_issuer_has_ended_asks_to_sign_in_again(iam: Iam, tmp_path: Path) -> None:
    home, login = Home(str(tmp_path / "home")), sign_in(iam)
    keep_login(home, SERVICE, login)
    assert give_back(login) == ""
    assert iam.refreshing == set()
    with pytest.raises(NotSignedIn, match="has ended"):
        renew_login(home, SERVICE, login.access)
    assert load_login(home, SERVICE) == login
    iam.is_down = True
    with pytest.raises(ProviderUnreachable):
        renew_login(home, SERVICE, login.access)
