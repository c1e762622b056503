"""On a gateway a notebook and JupyterLab run in the operator's image, in a real container, and are offered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from sublet.booking.api.connect import ConnectProxy
from sublet.booking.model.phases import Phase
from sublet.people.model.person import Person
from tests.api.test_connect import served
from tests.contract.services import allow, ask, in_phase, over, reach, serving
from tests.real.container_tools import find_tools
from tests.real.jupyter_image import jupyter_archive
from tests.real.notebooks import write_notebook

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
BOB = Person("bob@example.org")
HELLO = {"header": {"msg_id": "a", "msg_type": "kernel_info_request", "session": "s", "version": "5.3", "date": ""}}


async def test_a_gateway_offers_notebooks_and_jupyterlab_in_the_operators_image(tmp_path: Path) -> None:
    find_tools("podman")
    digest = jupyter_archive(tmp_path / "jupyter.tar", with_lab=True)
    image = {"location": f"docker-archive:{tmp_path}/jupyter.tar", "digest": digest}
    look = "import os\nprint(n, os.getcwd(), os.path.exists('/etc/shadow'))"
    path = write_notebook(tmp_path / "a.ipynb", "n = 1", look, "open('x', 'w').close()")
    settings = {"mode": "gateway", "images": {"jupyter": image}, "file_roots": [tmp_path]}
    settings |= {"standard_images": {"notebook": "jupyter", "lab": "jupyter"}, "platforms": {"here": {"kind": "local"}}}
    async with serving(tmp_path / "home", **settings) as service:
        await allow(service, BOB.name)
        for short in ({"notebook": f"file://{path}", "parameters": {"n": 7}}, {"interactive": "lab"}):
            offerset = await ask(service, BOB, run=None, time="5m", memory="1GiB", **short)
            assert [offer.offer.way for offer in offerset.offers] == ["podman"], offerset.reasons
            session = await service.sessions.accept(offerset.offers[0].id, BOB)
            if "notebook" in short:
                ended = await over(service, session.id, BOB, 120)
                place = service.settings.home / "platforms" / "here" / "sessions" / session.id
                assert ended.phase is Phase.COMPLETED, (ended.end, (place / "stderr").read_text())
                assert (place / "stdout").read_text() == "7 /work False\n"
                left = {file.path for file in (await service.output.results(session.id, BOB)).files}
                assert left >= {"executed.ipynb", "x"}
                executed = json.loads((place / "work" / "executed.ipynb").read_text())
                assert "injected-parameters" in executed["cells"][1]["metadata"]["tags"]
        await reach(service, session.id, in_phase(Phase.AVAILABLE), BOB, 120)
        await _use_lab(ConnectProxy(service.connections, service.secrets), session.id, service.secrets.of(session.id))
        await service.sessions.cancel(session.id, BOB)
        assert (await over(service, session.id, BOB, 60)).phase is Phase.CANCELLED


async def _use_lab(proxy: ConnectProxy, session: str, secret: str) -> None:
    """As a browser does: by the secret once, then by a cookie; a kernel is started and answers."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    async with served(Starlette(routes=[Mount("/connect", app=proxy)])) as host:
        base = f"http://{host}/connect/{session}"
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            assert (await browser.get(f"{base}/lab")).status_code == 401
            page = await browser.get(f"{base}/?token={secret}")
            assert page.status_code == 200
            assert "JupyterLab" in page.text
            xsrf = {"X-XSRFToken": browser.cookies.get("_xsrf") or ""}
            kernel = await browser.post(f"{base}/api/kernels", headers=xsrf, json={"name": "python3"})
            assert kernel.status_code == 201, kernel.text
            cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
        url = f"ws://{host}/connect/{session}/api/kernels/{kernel.json()['id']}/channels"
        async with asyncio.timeout(30), connect(url, additional_headers={"Cookie": cookies}, proxy=None) as socket:
            whole = HELLO | {"parent_header": {}, "metadata": {}, "content": {}, "channel": "shell"}
            await socket.send(json.dumps(whole))
            while json.loads(await socket.recv())["header"]["msg_type"] != "kernel_info_reply":
                pass
    await proxy.close()
