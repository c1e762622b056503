"""A shell and JupyterLab on a node of a real Slurm site, reached through the one login, by who has the secret alone."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Mount, Router
from websockets.asyncio.client import unix_connect

from sublet.app import open_service
from sublet.booking.api.connect import ConnectProxy
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.kernel.settings import Settings
from sublet.reach.tunnels import Tunnels
from sublet.service import Service
from tests.contract.services import ME, ask, reach
from tests.real.clusters import SOON, sign_in, ssh_options
from tests.real.notebooks import install
from tests.sites import Site

pytestmark = pytest.mark.anyio
PLACE = "/scratch/software/lab"
LAB = "bin/jupyter-lab"


@pytest.fixture(scope="module")
def lab(site: Site) -> Iterator[None]:
    """JupyterLab is on the site: what is installed here, by the site's own Python."""
    install(site, PLACE, ("jupyterlab",))
    script = f'#!/bin/sh\nexec {PLACE}/bin/python3 -m jupyterlab "$@"\n'
    path = 'printf "%s\\n" "PATH=\\$HOME/bin:\\$PATH" >>.bashrc'
    write = f'cp .bashrc .bashrc.kept; mkdir -p bin && printf "%s" "$1" >{LAB} && chmod 755 {LAB} && {path}'
    site.on("researcher@login", "sh", "-c", f"cd && {write}", "sh", script)
    yield
    site.on("researcher@login", "sh", "-c", "cd && mv .bashrc.kept .bashrc && rm -rf bin")
    site.on("login", "rm", "-rf", PLACE)


@pytest.fixture
async def service(site: Site, lab: None, tmp_path: Path) -> AsyncIterator[Service]:
    quick = {"poll": 0.3, "look": 0.1, "patience": 1, "grace": 1, "calls": 100, "queue": "debug"}
    far = {"kind": "slurm", "host": site.host, "user": "researcher", "ssh": ssh_options(site), **quick}
    login = await sign_in(site, tmp_path)
    async with open_service(Settings.load(tmp_path, platforms={"far": far}, poll="PT0.2S")) as opened:
        yield opened
    await login.close()


async def begin(service: Service, interface: str) -> Session:
    made = await ask(service, run=None, interactive=interface, time="4m", memory="256MiB", platform="far")
    assert made.result == "YES", made.reasons
    accepted = await service.sessions.accept(made.offers[0].id, ME)
    async with asyncio.timeout(SOON):
        while (session := await service.sessions.get(accepted.id, ME)).phase is not Phase.AVAILABLE:
            assert session.end is None, session
            await service.signals.wait(0.1)
    return session


async def visit(connect: ConnectProxy, session: Session, target: str, **headers: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=Router([Mount("/connect", app=connect)]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://here", timeout=30) as client:
        return await client.get(f"/connect/{session.id}/{target}", headers=headers)


async def typed(service: Service, session: Session, line: str, wanted: str) -> str:
    """What a shell says, from its past and to a line, until it says what is wanted."""
    through = (await service.connections.upstream(session.id)).removeprefix("unix:")
    secret = {"Authorization": f"token {service.secrets.of(session.id)}"}
    place = f"ws://localhost/connect/{session.id}/ws"
    async with unix_connect(through, place, additional_headers=secret) as web, asyncio.timeout(SOON):
        await web.send(f"{line}\n".encode())
        seen = b""
        while wanted.encode() not in seen:
            seen += await web.recv(decode=False)
    return seen.decode()


async def test_a_shell_on_a_node_is_reached_by_who_has_the_secret_and_comes_back_after_a_lapse(
    service: Service, site: Site, tmp_path: Path
) -> None:
    session = await begin(service, "shell")
    [way] = session.connectors
    assert way.kind == "uri:shell"
    seen = await typed(service, session, 'echo "<$(uname -n)|$PWD>"', f"/sessions/{session.id}/work>")
    assert "<c" in seen

    place = site.on("researcher@login", "cat", f".sublet/sessions/{session.id}/connector").split()[-1]
    for user in ("keyholder@login", "researcher@login"):
        host, _, port = place.rpartition(":")
        knock = f"import urllib.request as r; print(r.urlopen('http://{host}:{port}/connect/{session.id}/').status)"
        said = site.on(user, "python3", "-c", f"try:\n {knock}\nexcept Exception as e: print(e)")
        assert "403" in said

    login = service.platforms.by_name["far"].login
    tunnel = Tunnels(login.target).place(session.id)
    assert tunnel.stat().st_mode & 0o777 == 0o600
    await login.close()
    lapsed = await reach(service, session.id, lambda one: "sublet system login far" in one.condition)
    assert lapsed.phase is Phase.AVAILABLE
    await login.open(lambda prompt: _answer(site, prompt.text))
    await reach(service, session.id, lambda one: not one.condition)
    await typed(service, session, "echo forty-$((1 + 1))", "forty-2")

    await service.sessions.cancel(session.id, ME)
    await _until(lambda: not tunnel.exists() and not tunnel.with_suffix(".end").exists())


@pytest.mark.engines
async def test_jupyterlab_on_a_node_is_reached_through_the_service(service: Service) -> None:
    session = await begin(service, "lab")
    connect = ConnectProxy(service.connections, service.secrets, service.session_notices)
    assert (await visit(connect, session, "api/status")).status_code == 401
    answer = await visit(connect, session, "api/status", authorization=f"token {service.secrets.of(session.id)}")
    assert answer.status_code == 200
    assert "kernels" in answer.json()
    page = await visit(connect, session, f"lab?token={service.secrets.of(session.id)}")
    assert page.status_code in (200, 302)
    await connect.close()
    await service.sessions.cancel(session.id, ME)


async def test_a_login_host_that_lets_nothing_through_is_told(service: Service, site: Site) -> None:
    block = ("iptables", "-I", "OUTPUT", "-p", "tcp", "--dport", "10000:32000", "-j", "REJECT")
    if not shutil.which("iptables"):
        pytest.skip("iptables is not installed: nothing can be kept from passing")
    site.on("login", *block)
    try:
        made = await ask(service, run=None, interactive="shell", time="4m", memory="256MiB", platform="far")
        id = (await service.sessions.accept(made.offers[0].id, ME)).id
        told = await reach(service, id, lambda one: "lets nothing through" in one.condition)
        assert told.phase is Phase.PREPARING
        await service.sessions.cancel(id, ME)
    finally:
        site.on("login", "iptables", "-D", *block[2:])


async def _answer(site: Site, prompt: str) -> str:
    return str(site.facts["password"]) if "assword" in prompt else await asyncio.to_thread(site.fresh_code)


async def _until(true: object) -> None:
    async with asyncio.timeout(SOON):
        while not true():  # type: ignore[operator]  # noqa: ASYNC110 (it happens elsewhere)
            await asyncio.sleep(0.05)
