"""An OpenID provider for the tests, in a process of its own, and someone's browser that signs in there."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from sublet.settings import OidcSettings
from tests.openid_server import PASSWORD

PATIENCE = 60.0


@dataclass(frozen=True)
class OpenId:
    """One that runs."""

    issuer: str
    secret_file: Path

    def settings(self, **more: str) -> dict[str, str]:
        """How a gateway is told of it."""
        values = {"issuer": self.issuer, "client_id": "gateway", "client_secret_file": str(self.secret_file)}
        return values | more

    def seen(self, **more: str) -> OidcSettings:
        """The same, read."""
        return OidcSettings(**self.settings(**more))  # type: ignore[arg-type]

    def sign_in(self, address: str, person: str) -> str:
        """Follow an address as a browser does, sign in as this person, and say where that leads back to."""
        with httpx2.Client(trust_env=False, timeout=30) as browser:
            while True:
                answer = browser.get(address)
                if answer.status_code == 200:
                    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.text)
                    assert found, answer.text
                    form = {"csrfmiddlewaretoken": found[1], "username": person, "password": PASSWORD}
                    answer = browser.post(answer.url, data=form)
                assert answer.is_redirect, f"{answer.status_code}: {answer.text}"
                address = str(answer.url.join(answer.headers["location"]))
                if not address.startswith(self.issuer.removesuffix("/o")):
                    return address


@contextlib.contextmanager
def openid(directory: Path, *redirects: str) -> Iterator[OpenId]:
    """One that runs, with a key of its own, and sends people back to these addresses."""
    directory.mkdir(parents=True, exist_ok=True)
    log = (directory / "log").open("wb")
    words = [sys.executable, "-m", "tests.openid_server", str(directory), json.dumps(redirects)]
    process = subprocess.Popen(words, stdout=log, stderr=log, cwd=Path(__file__).parents[1])
    log.close()
    try:
        deadline = time.monotonic() + PATIENCE
        port = directory / "port"
        while not port.exists():
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < deadline, (directory / "log").read_text()
            time.sleep(0.02)
        secret = directory / "client-secret"
        secret.touch(mode=0o600)
        secret.write_text("secret of gateway\n")
        yield OpenId(f"http://127.0.0.1:{port.read_text()}/o", secret)
    finally:
        process.kill()
        process.wait()
