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

from sublet.kernel import master_key
from sublet.kernel.settings_tables import OidcSettings
from sublet.kernel.tls import trust_machine
from tests.openid_server import PASSWORD
from tests.serving import Serving

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
        with httpx2.Client(verify=trust_machine(environment=False), trust_env=False, timeout=30) as browser:
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
def openid(directory: Path, *redirects: str, host: str = "127.0.0.1") -> Iterator[OpenId]:
    """One that runs, with a key of its own, and sends people back to these addresses."""
    directory.mkdir(parents=True, exist_ok=True)
    log = (directory / "log").open("wb")
    words = [sys.executable, "-m", "tests.openid_server", str(directory), host, json.dumps(redirects)]
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
        yield OpenId(f"http://{host}:{port.read_text()}/o", secret)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def trusting_gateway(directory: Path, host: str = "127.0.0.1") -> Iterator[tuple[str, OpenId]]:
    """A gateway in a process of its own that lets people in by such a provider; its address, and the provider."""
    home, key = directory / "gateway", directory / "keys" / "master"
    for one in (home, key.parent):
        one.mkdir(mode=0o700)
    master_key.make(str(key))
    with openid(directory / "campus", "http://127.0.0.1/web/sign-in/oidc/campus/back", host=host) as campus:
        lines = ['mode = "gateway"', f'master_key = "{key}"', "[oidc.campus]", 'title = "the campus"']
        lines += [f'{name} = "{value}"' for name, value in campus.settings().items()]
        (home / "sublet.toml").write_text("\n".join([*lines, "[platforms.trial]", 'kind = "memory"', ""]))
        serving = Serving(home, "--port", "0")
        serving.start()
        try:
            yield json.loads((home / "run" / "service.json").read_text())["url"], campus
        finally:
            serving.stop()
        assert "secret of gateway" not in serving.log()
