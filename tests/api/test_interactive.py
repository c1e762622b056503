"""A real JupyterLab on this machine, reached as a person reaches it: by the address that its session shows."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.server.app import make_app
from tests.api.test_connect import served

pytestmark = pytest.mark.anyio

PATIENCE = timedelta(seconds=90)


async def phase(client: httpx2.AsyncClient, session: str, *wanted: str) -> dict[str, Any]:
    """The session, once it is in one of these phases."""
    deadline = datetime.now(UTC) + PATIENCE
    while True:
        found: dict[str, Any] = (await client.get(f"/v1/sessions/{session}")).json()
        if found["phase"] in wanted:
            return found
        assert datetime.now(UTC) < deadline, found
        await asyncio.sleep(0.1)


async def test_a_lab_is_opened_by_its_connector_and_its_terminal_answers(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, platforms={"here": {"kind": "local"}})
    async with open_service(settings) as service, served(make_app(service)) as host:
        service.presenter.base_url = f"http://{host}"
        _, token = await service.people.tokens.make_token(Person("ann"))
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=f"http://{host}", headers=headers, trust_env=False, timeout=60) as ann:
            asked = await ann.post("/v1/offersets", json={"interactive": "lab", "time": "5m", "memory": "1GiB"})
            session = asked.json()["offers"][0]["id"]
            await ann.post(f"/v1/sessions/{session}/accept")
            (connector,) = (await phase(ann, session, "AVAILABLE"))["connectors"]
            assert connector["location"].startswith(f"http://{host}/connect/{session}/?token=")
            document = (await ann.get(f"/sessions/{session}")).json()
            assert document["connectors"] == [connector]
            await visit(host, session, connector["location"])
            assert (await ann.post(f"/v1/sessions/{session}/cancel")).json()["phase"] == "CANCELLED"
            assert (await ann.get(connector["location"])).status_code == 409


async def visit(host: str, session: str, location: str) -> None:
    """Open the page, look around by the cookie alone, and type into a terminal."""
    secret = location.rpartition("=")[2]
    own = f"http://{host}/connect/{session}"
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False, timeout=60) as browser:
        page = await browser.get(location)
        assert page.status_code == 200
        assert "JupyterLab" in page.text
        assert str(page.url).startswith(f"{own}/lab")
        assert (await browser.get(f"{own}/api/contents")).status_code == 200
        headers = {"authorization": f"token {secret}"}
        terminal = (await browser.post(f"{own}/api/terminals", headers=headers)).json()["name"]
    async with httpx2.AsyncClient(trust_env=False) as stranger:
        assert (await stranger.get(f"{own}/api/contents")).status_code == 401
    address = f"ws://{host}/connect/{session}/terminals/websocket/{terminal}?token={secret}"
    async with connect(address, origin=f"http://{host}", proxy=None) as socket, asyncio.timeout(60):  # type: ignore[arg-type]
        await socket.send(json.dumps(["stdin", "echo answer-$((6*7))\r"]))
        while "answer-42" not in str(await socket.recv()):
            pass


async def test_a_web_application_of_ones_own_is_opened_by_its_connector(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, platforms={"here": {"kind": "local"}})
    async with open_service(settings) as service, served(make_app(service)) as host:
        service.presenter.base_url = f"http://{host}"
        _, token = await service.people.tokens.make_token(Person("ann"))
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=f"http://{host}", headers=headers, trust_env=False, timeout=60) as ann:
            run = ["python3", "-m", "http.server", "--bind", "{host}", "{port}"]
            wish = {"web": "auto", "run": run, "data": ["data:,hello"], "time": "5m", "memory": "256MiB"}
            session = (await ann.post("/v1/offersets", json=wish)).json()["offers"][0]["id"]
            accepted = (await ann.post(f"/v1/sessions/{session}/accept")).json()
            (coming,) = accepted["connectors"]
            assert coming["status"] == "PREPARING"
            await phase(ann, session, "AVAILABLE")
            async with httpx2.AsyncClient(follow_redirects=True, trust_env=False, timeout=60) as browser:
                page = await browser.get(coming["location"])
                assert "Directory listing for /" in page.text, (
                    "the address is the one that the accept was answered with"
                )
            await ann.post(f"/v1/sessions/{session}/cancel")
