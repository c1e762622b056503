"""Signing in to a gateway, and to a broker, by a code that is typed at an IAM: a real one, and one of the tests."""

from __future__ import annotations

import json
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sublet.client import AsyncClient, Client
from sublet.kernel.home import Home
from sublet.kernel.kept_logins import KeptLogin, keep_login, load_login
from tests.agree import CODE, agree_in_browser
from tests.cli.test_gateway import PATIENCE, SUBLET, Someone
from tests.iam import Iam, iam_server
from tests.openid import openid
from tests.openid_server import TERMINAL
from tests.serving import Serving, eventually
from tests.smtp import Mailbox

AUDIENCE = "https://gateway.example.org"
ANN = "ann@illinois.edu"


@contextmanager
def gateway_of(home: Path, issuer: str, **settings: str) -> Iterator[tuple[str, Serving]]:
    """A gateway that takes the tokens of this issuer, and its address."""
    home.mkdir(mode=0o700)
    lines = ['mode = "gateway"', "[platforms.trial]", 'kind = "memory"', "[issuers.iam]", 'title = "the campus"']
    lines += [f'audiences = ["{AUDIENCE}"]', f'issuer = "{issuer}"']
    lines += [f'{name} = "{value}"' for name, value in settings.items()]
    (home / "sublet.toml").write_text("\n".join([*lines, ""]))
    serving = Serving(home, "--port", "0")
    serving.start()
    try:
        yield json.loads((home / "run" / "service.json").read_text())["url"], serving
    finally:
        serving.stop()


def sign_in(someone: Someone, words: list[str], agree: Callable[[str, str], None]) -> tuple[str, str]:
    """Run a command that shows a page and a code, and agree there: what it wrote to both streams."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*SUBLET, *words], env=someone.environment, **pipes) as process:  # type: ignore[call-overload]
        seen, patience = "", threading.Timer(PATIENCE, process.kill)
        patience.start()
        while not (shown := CODE.search(seen)):
            line = process.stderr.readline()
            assert line, seen
            seen += line
        agree(shown[1], shown[2])
        printed, errors = process.communicate()
        patience.cancel()
    assert process.returncode == 0, seen + errors
    return printed, seen + errors


def test_a_person_signs_in_at_a_real_provider_by_a_code_and_signs_out(tmp_path: Path) -> None:
    ann = Someone(tmp_path / "ann", Mailbox())
    with openid(tmp_path / "campus") as campus:
        codes = {"client_id": TERMINAL, "device_endpoint": f"{campus.issuer}/device-authorization/"}
        with gateway_of(tmp_path / "gateway", campus.issuer, **codes) as (url, serving):
            printed, shown = sign_in(ann, ["login", url], partial(agree_in_browser, "ann"))
            assert printed == f"You are signed in to {url} as {ANN}.\n"
            directory = ann.home / "gateways"
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
            assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}
            login = load_login(Home(str(ann.home)), url)
            assert login
            who = ann.types("whoami").stdout
            assert f"person    {ANN}\n" in who
            assert "token of  the campus, and renewed by it\n" in who
            stale = replace(login, access="not.a.token")  # as one that the gateway takes no longer
            keep_login(Home(str(ann.home)), url, stale)
            assert ann.types("whoami", "--quiet").stdout == f"{ANN}\n", "the provider gave another"
            renewed = load_login(Home(str(ann.home)), url)
            assert renewed
            assert renewed.refresh not in ("", login.refresh)
            done = ann.types("logout")
            assert done.stdout == f"You are signed out of {url}.\n"
            assert "its issuer takes no tokens back" in done.stderr, "this provider does not say where"
            assert [file.name for file in directory.iterdir()] == ["lock"]
            keep_login(Home(str(ann.home)), url, stale)  # a refresh token that was used counts no more
            refused = ann.types("whoami", SUBLET_URL=url)
            assert (refused.returncode, "has ended" in refused.stderr) == (4, True), refused.stderr
            texts = serving.log() + shown + printed + refused.stderr
            assert not [
                secret for kept in (login, renewed) for secret in (kept.access, kept.refresh) if secret in texts
            ]


@pytest.fixture(scope="module")
def iam() -> Iterator[Iam]:
    with iam_server() as server:
        server.claims = {"email": ANN, "email_verified": True, "groups": ["/srcnet"]}
        yield server


@pytest.mark.anyio
async def test_a_login_is_renewed_in_silence_also_for_python_and_for_ones_own_service(
    iam: Iam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = Someone(tmp_path / "ann", Mailbox())
    monkeypatch.setenv("SUBLET_HOME", str(ann.home))
    home = Home(str(ann.home))
    iam.lasts = 20  # seconds: each use finds it due
    with gateway_of(tmp_path / "gateway", iam.issuer, client_id="cli") as (url, serving):
        boss = Someone(tmp_path / "gateway", Mailbox())
        assert boss.types("rule", "add", "allow", "group:iam:/srcnet", "--system", "trial").returncode == 0
        own = Serving(ann.home)
        ann.home.mkdir(mode=0o700)
        own.start()
        try:
            added = ann.types("broker", "add", "site", url)
            assert added.returncode == 0, added.stderr
            printed, _ = sign_in(ann, ["broker", "login", "site"], lambda page, code: None)
            assert printed.startswith("You are signed in to site.")
            assert ann.types("whoami", "--json").stdout.count('"personal"') == 1, "commands go where they went"
            first = load_login(home, url)
            words = ("ask", "--cores", "1", "--time", "10m", "--image", "docker://busybox", "--json")
            asked = ann.types(*words)
            assert "site/trial" in asked.stdout, asked.stdout + asked.stderr

            def find_another() -> KeptLogin | None:
                """A token counts for a moment for all who ask at once; whoever asks later finds it due."""
                ann.types(*words)
                kept = load_login(home, url)
                return kept if kept and first and kept.refresh != first.refresh else None

            second = eventually(find_another, "it to be renewed, because it is due")
            assert isinstance(second, KeptLogin)
            assert not [secret for secret in (second.access, second.refresh) if secret in own.log() + serving.log()]
        finally:
            own.stop()
        assert Client(url).whoami().person == ANN
        iam.lasts = 3600
        async with AsyncClient(url) as client:
            assert (await client.whoami()).person == ANN
        kept = load_login(home, url)
        assert kept
        keep_login(home, url, replace(kept, access="a.b.c"))
        async with AsyncClient(url) as client:
            assert (await client.whoami()).person == ANN, "one that does not count is renewed"
        last = load_login(home, url)
        done = ann.types("logout", url)
        assert (done.stdout, done.stderr) == (f"You are signed out of {url}.\n", "")
        assert last
        assert last.refresh not in iam.refreshing, "the issuer took it back"
