"""Someone who works in JupyterLab through a session's connector, as a browser does."""

from __future__ import annotations

import asyncio
import json

import httpx2
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect

from sublet.booking.api.connect import ConnectProxy
from tests.api.test_connect import served

HELLO = {"header": {"msg_id": "a", "msg_type": "kernel_info_request", "session": "s", "version": "5.3", "date": ""}}


async def use_lab(proxy: ConnectProxy, session: str, secret: str) -> None:
    """As a browser does: by the secret once, then by a cookie; a kernel is started and answers."""
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
