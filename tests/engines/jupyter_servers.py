"""A real JupyterHub with its proxy, and a real Jupyter Server, each on ports of its own."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.engines.environments import find_cache, have_environment
from tests.ports import free_port

PROXY = "configurable-http-proxy@5.3.0"
PATIENCE = 300.0
SLOWEST = 120.0  # seconds until it answers, on a busy machine
SERVICE = "token-of-the-service-0a1b2c"
CONFIG = """
import os, sys
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}/"
c.JupyterHub.db_url = "sqlite:///{home}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{home}/cookie_secret"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.ConfigurableHTTPProxy.pid_file = "{home}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "polonium"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{home}/homes/{{username}}"
c.Spawner.cmd = ["{bin}/jupyterhub-singleuser"]
c.Spawner.args = ["--allow-root", "--ServerApp.log_level=WARN"]
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120
c.Spawner.default_url = "/lab"
c.JupyterHub.allow_named_servers = {named}
c.JupyterHub.cleanup_servers = True

def check(spawner):
    if spawner.user_options.get("profile") == "broken":
        raise RuntimeError("there is no profile of that name")

c.Spawner.pre_spawn_hook = check
c.JupyterHub.services = [dict(name="sublet", api_token="{service}")]
c.JupyterHub.load_roles = [
    dict(
        name="sublet",
        services=["sublet"],
        scopes=["admin:users", "admin:servers", "access:servers", "list:users", "tokens"],
    )
]
"""


@dataclass(frozen=True)
class Jupyter:
    """A hub, or a server, that answers."""

    url: str
    home: Path  # the home of its user, or all homes
    process: subprocess.Popen[bytes]
    token: str

    def make_token(self, user: str) -> str:
        """A token of somebody at a hub, as they would make it there."""
        self.ask("POST", f"/hub/api/users/{user}")
        return str(self.ask("POST", f"/hub/api/users/{user}/tokens").json()["token"])

    def ask(self, method: str, path: str, token: str = "") -> httpx2.Response:
        """What it says to somebody else than Sublet."""
        headers = {"Authorization": f"token {token or self.token}"}
        return httpx2.request(method, f"{self.url}{path}", headers=headers, timeout=SLOWEST)


def have_proxy() -> Path:
    """The hub's proxy, installed once; what is missing for that is said aloud."""
    place = find_cache() / "engines" / PROXY.replace("@", "-")
    program = place / "node_modules" / ".bin" / "configurable-http-proxy"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not program.exists():
            npm = shutil.which("npm")
            if not npm:
                pytest.skip("npm is not installed, and JupyterHub's proxy comes by it")
            words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", place, PROXY]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{PROXY} can't be installed here: {done.stderr.strip()[-300:]}")
    return program


@contextmanager
def start(words: list[str], home: Path, address: str, variables: Mapping[str, str], token: str) -> Iterator[Jupyter]:
    """A program that answers at an address, until it is not needed any more."""
    home.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **variables}
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(words, cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True)
    jupyter = Jupyter(address, home, process, token)
    try:
        _wait_until_it_answers(jupyter, home / "log")
        yield jupyter
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_answers(jupyter: Jupyter, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert jupyter.process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        try:
            if jupyter.ask("GET", "/api" if "hub" not in jupyter.home.name else "/hub/api/").is_success:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.2)


@contextmanager
def serve_hub(home: Path, *, named: bool = True) -> Iterator[Jupyter]:
    """A hub with one service and one person, marie, who both have tokens; `home` must be called hub…"""
    environment, proxy = have_environment("jupyterhub"), have_proxy()
    port, api, hub = free_port(), free_port(), free_port()
    home.mkdir(parents=True)
    (home / "homes").mkdir()
    values = {"port": port, "api": api, "hub": hub, "home": home, "proxy": proxy, "bin": environment / "bin"}
    text = CONFIG.format(**values, named=named, service=SERVICE)
    (home / "jupyterhub_config.py").write_text(text)
    words = [str(environment / "bin" / "jupyterhub"), "-f", "jupyterhub_config.py"]
    variables = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}
    with start(words, home, f"http://127.0.0.1:{port}", variables, SERVICE) as jupyter:
        yield jupyter


@contextmanager
def serve_jupyter(home: Path) -> Iterator[Jupyter]:
    """A single server, below /base, whose files are in `home`/files."""
    environment, port, token = have_environment("jupyterhub"), free_port(), "token-of-the-server-6a7b8c"
    (home / "files").mkdir(parents=True)
    words = [str(environment / "bin" / "jupyter-server"), "--allow-root", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    words += [f"--ServerApp.port={port}", f"--ServerApp.root_dir={home / 'files'}", "--ServerApp.base_url=/base/"]
    words += ["--ServerApp.log_level=WARN"]
    variables = {"JUPYTER_TOKEN": token, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}
    with start(words, home, f"http://127.0.0.1:{port}/base", variables, token) as jupyter:
        yield jupyter
