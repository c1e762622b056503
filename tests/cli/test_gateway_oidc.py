"""Signing in to a gateway from a terminal by an OpenID provider, with a second factor."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pyotp
import pytest

from sublet.cli.screen import width_of
from tests.cli.test_gateway import PATIENCE, SUBLET, Someone
from tests.cli.test_terminal import at_terminal
from tests.openid import OpenId, trusting_gateway
from tests.qr_reader import read_blocks
from tests.smtp import Mailbox

ANN = "ann@illinois.edu"


@dataclass
class There:
    """A gateway that runs, and the provider that it trusts."""

    url: str
    campus: OpenId

    def shows(self, address: str) -> str:
        """The code that the page shows once ann has signed in there."""
        with httpx2.Client(trust_env=False, timeout=PATIENCE) as browser:
            begun = browser.get(address)
            page = browser.get(self.campus.sign_in(begun.headers["location"], "ann")).text
        found = re.search(r"<code>(sublet_[^<]+)</code>", page)
        assert found, page
        return found[1]


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    with trusting_gateway(tmp_path) as (url, campus):
        yield There(url, campus)


def typed(someone: Someone, words: list[str], asked: str, answer: Callable[[str], str]) -> tuple[str, str]:
    """Run a command that tells something and waits for an answer to it: what it said on both."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*SUBLET, *words], env=someone.environment, **pipes) as process:  # type: ignore[call-overload]
        seen = ""
        while not (found := re.search(asked, seen)):
            line = process.stderr.readline()
            assert line, seen
            seen += line
        said, errors = process.communicate(f"{answer(found[1])}\n", timeout=PATIENCE)
    assert process.returncode == 0, seen + errors
    return said, seen + errors


def test_a_terminal_signs_in_by_a_page_and_shows_a_second_factor(there: There, tmp_path: Path) -> None:
    ann = Someone(tmp_path / "ann", Mailbox())
    login, link = ["login", there.url, "--oidc", "campus"], r"(http://\S+challenge=[0-9a-f]{64})\n"
    said, _ = typed(ann, login, link, there.shows)
    assert said == f"You are signed in to {there.url} as {ANN}.\n"
    unknown = ann.types("login", there.url, "--oidc", "nowhere")
    assert (unknown.returncode, "There are: campus." in unknown.stderr) == (1, True)

    words = ("-m", "sublet.cli", "person", "totp", "on", "--code", "000000")
    screen = at_terminal(*words, SUBLET_HOME=str(ann.home))
    assert "Scan this with your authenticator" in screen
    assert read_blocks(screen) in screen.split()  # the address, which stands below
    assert max(map(width_of, screen.partition("Scan")[0].splitlines())) <= 80

    secret = ""

    def shown(found: str) -> str:
        nonlocal secret
        secret = found
        return pyotp.TOTP(found).now()

    said, _ = typed(ann, ["person", "totp", "on"], r"\n  ([A-Z2-7]{32})\n", shown)
    recovery = said.splitlines()[1:]
    assert len(recovery) == 8
    assert "8 recovery codes" in ann.types("person", "totp", "status").stdout
    operator = Someone(tmp_path / "gateway", Mailbox())
    [line] = [line for line in operator.types("person", "list").stdout.splitlines() if line.startswith(ANN)]
    assert re.search(r"person +yes ", line)
    assert re.search("second factor +yes\n", ann.types("person", "show", ANN).stdout)
    assert ann.types("token", "make", "--scope", "read", "--expires", "7d", "--quiet").stdout.startswith("sublet_")
    assert " read " in ann.types("token", "list").stdout
    ann.types("logout")

    def both(found: str) -> str:
        return f"{there.shows(found)}\n{recovery[0]}"

    said, told = typed(ann, login, link, both)
    assert said == f"You are signed in to {there.url} as {ANN}.\n"
    assert "second factor" in told
    off = ann.types("person", "totp", "off", stdin=f"{recovery[1]}\n")
    assert (off.returncode, off.stdout) == (0, "It is off.\n"), off.stderr
    assert re.search("second factor +no\n", operator.types("person", "show", ANN).stdout)
    assert secret not in said + told
