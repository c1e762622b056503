"""The guide to operating a service, with a real nginx before it; and what its proxy must pass on."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from websockets.sync.client import connect

from sublet.booking.cli.attaching import terminal_of
from sublet.client import Client
from sublet.people.calls.people import new_token
from tests.docs.guides import Written, parts, run_guide
from tests.iam import iam_server
from tests.ports import free_port
from tests.serving import Serving, eventually

pytestmark = pytest.mark.engines

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "operate.md"
PROGRAMS = ("nginx", "openssl", "curl", "systemd-analyze")
BIN = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
CERTIFICATE = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"


def require(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name, path=BIN) is None]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}")


def stop(pid_file: Path) -> None:
    """End an nginx that this test started."""
    if pid_file.exists():
        os.kill(int(pid_file.read_text()), signal.SIGTERM)


@pytest.mark.parametrize("guide", ["operate"])
def test_the_guide_to_operating_shows_what_its_commands_say(guide: str, tmp_path: Path) -> None:
    require(*PROGRAMS)
    here = tmp_path / "here"
    here.mkdir()
    port, proxy = str(free_port()), str(free_port())
    kept = tmp_path / "exported"
    environment = {"PORT": port, "PROXY": proxy, "HOME": str(here), "PATH": BIN, "COLUMNS": "100", "TZ": "UTC"}
    environment |= {"PWD": str(here), "SUBLET_HOME": str(here / "home")}

    def shell(command: str) -> list[str]:
        """Remember what a command exported."""
        names = "SUBLET_HOME CURL_CA_BUNDLE SITE"
        return ["bash", "-c", f'[ -f "{kept}" ] && . "{kept}"\n{command}\ndeclare -p {names} >"{kept}" 2>/dev/null; :']

    try:
        differences = run_guide(GUIDE, here, environment, shell)
    finally:
        stop(here / "nginx.pid")
        down = [str(Path(sys.executable).parent / "sublet"), "down"]
        subprocess.run(down, env={**os.environ, **environment}, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)


@pytest.mark.parametrize("guide", ["operate-a-site"])
def test_the_guide_to_a_sites_own_broker_shows_what_its_commands_say(guide: str, tmp_path: Path) -> None:
    require("curl")
    here, kept = tmp_path / "here", tmp_path / "exported"
    here.mkdir()
    port = str(free_port())
    with iam_server() as iam:
        token = iam.token(aud=f"http://127.0.0.1:{port}", email="ann@x.org", email_verified=True, groups=["/srcnet"])
        environment = {"PORT": port, "IAM": iam.issuer, "TOKEN": token, "HOME": str(here), "PATH": BIN, "TZ": "UTC"}
        environment |= {"PWD": str(here), "SUBLET_HOME": str(here / "home"), "COLUMNS": "110"}

        def shell(command: str) -> list[str]:
            """Remember what a command exported."""
            names = "SUBLET_HOME SUBLET_URL SUBLET_TOKEN"
            after = f'for name in {names}; do declare -p "$name"; done >"{kept}" 2>/dev/null; :'
            return ["bash", "-c", f'[ -f "{kept}" ] && . "{kept}"\n{command}\n{after}']

        try:
            differences = run_guide(GUIDE.with_name(f"{guide}.md"), here, environment, shell)
        finally:
            down = [str(Path(sys.executable).parent / "sublet"), "down"]
            subprocess.run(down, env={**os.environ, **environment}, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)


@contextmanager
def proxied(place: Path, port: str, proxy: str) -> Iterator[str]:
    """The guide's own nginx, before a service on a port."""
    written = {part.name: part.text for part in parts(GUIDE.read_text()) if isinstance(part, Written)}
    values = {"PWD": str(place), "PORT": port, "PROXY": proxy}
    for name in ("sublet.conf", "nginx.conf"):
        (place / name).write_text(string.Template(written[name]).safe_substitute(values))
    made = ["openssl", "req", *CERTIFICATE.split(), "-keyout", place / "tls.key", "-out", place / "tls.crt"]
    subprocess.run(made, check=True, capture_output=True)
    words = ["nginx", "-e", place / "nginx.log", "-c", place / "nginx.conf"]
    done = subprocess.run(words, env={"PATH": BIN}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    try:
        yield f"https://localhost:{proxy}"
    finally:
        stop(place / "nginx.pid")


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[str, str, ssl.SSLContext, Serving]]:
    """A service behind that nginx: its address there, a token, whom to trust, and itself."""
    require("nginx", "openssl")
    port, proxy = str(free_port()), str(free_port())
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    lines = [f"port = {port}", f'url = "https://localhost:{proxy}"', 'proxies = ["127.0.0.1"]']
    (home / "sublet.toml").write_text("\n".join([*lines, "[throttle]", 'wrong_tokens_per_host = "3/1h"', ""]))
    serving = Serving(home)
    client = serving.start()
    token = client.do(new_token()).token
    try:
        with proxied(tmp_path, port, proxy) as url:
            yield url, token, ssl.create_default_context(cafile=str(tmp_path / "tls.crt")), serving
    finally:
        serving.stop()


def test_the_guides_proxy_passes_on_streams_sockets_and_who_asks(
    behind: tuple[str, str, ssl.SSLContext, Serving],
) -> None:
    url, token, trust, serving = behind
    bearer = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=url, verify=trust, headers=bearer, trust_env=False, timeout=30) as caller:
        asked = caller.post("/v1/offersets", json={"interactive": "shell", "time": "5m"}).json()
        session = asked["offers"][0]["id"]
        with caller.stream("GET", f"/v1/events?session={session}", headers={"accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith(":"), "the first line comes at once, not when a buffer is full"
            caller.post(f"/v1/sessions/{session}/accept")
            assert any("ACCEPTED" in line for line in lines)
        client = Client(socket=serving.socket)
        eventually(lambda: client.session(session).phase == "AVAILABLE", "a shell", 60)
        address = terminal_of(client.session(session).view)
        assert address.startswith(f"wss{url.removeprefix('https')}/connect/{session}")
        with connect(address, ssl=trust, proxy=None) as shell:
            shell.send(b"echo answer-$((6*7))\n")
            seen, deadline = b"", time.monotonic() + 30
            while b"answer-42" not in seen and time.monotonic() < deadline:
                message = shell.recv(timeout=30)
                seen += message if isinstance(message, bytes) else message.encode()
        assert b"answer-42" in seen
        caller.post(f"/v1/sessions/{session}/cancel")

    def guesses(host: str) -> list[int]:
        from_there = httpx2.HTTPTransport(verify=trust, local_address=host)
        wrong = {"authorization": "Bearer sublet_wrong", "x-forwarded-for": "203.0.113.9"}
        with httpx2.Client(base_url=url, transport=from_there, headers=wrong) as guesser:
            return [guesser.get("/v1/whoami").status_code for _ in range(5)]

    assert guesses("127.0.0.2") == [401, 401, 401, 429, 429]
    assert guesses("127.0.0.3") == [401, 401, 401, 429, 429], "each client is counted by its own address"
