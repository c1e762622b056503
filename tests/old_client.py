"""CyberGIS-Compute's own client (version 2) as far as HTTP goes: what it sends, and what it takes for an error."""

from __future__ import annotations

import asyncio
import base64
import json
from http.client import HTTPConnection
from typing import Any

import httpx2


class OldClient:
    """What theirs does, and no more."""

    def __init__(self, port: int, secret: str, *, plain: bool = False) -> None:
        """Its token is a text of its own form, or as it was typed."""
        self.port = port
        self.token = secret if plain else base64.b64encode(f"hub.example.org@{secret}".encode()).decode()

    def send(self, method: str, uri: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Exactly this body, and what came back."""
        connection = HTTPConnection(f"127.0.0.1:{self.port}")
        text = json.dumps(body if body is not None else {})
        connection.request(method, f"/compat/cybergis{uri}", text, {"Content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read().decode())

    def asks(self, method: str, uri: str, **fields: Any) -> Any:
        """With the token; an answer that is no error."""
        status, data = self.send(method, uri, {"jupyterhubApiToken": self.token, **fields})
        assert status == 200, data
        assert "error" not in data
        return data

    async def request(self, method: str, uri: str, **fields: Any) -> Any:
        """As it asks, while the service runs in this process."""
        return await asyncio.to_thread(self.asks, method, uri, **fields)

    async def fails(self, method: str, uri: str, **fields: Any) -> tuple[int, str]:
        """With the token; the code and the text of an error."""
        status, data = await asyncio.to_thread(self.send, method, uri, {"jupyterhubApiToken": self.token, **fields})
        return status, data["error"]

    async def upload(self, job: str, content: bytes, name: str = "folder.zip") -> tuple[int, Any]:
        """A folder for a job, as a form: what comes back."""
        form, files = {"jupyterhubApiToken": self.token, "jobId": job}, {"file": (name, content, "application/zip")}
        async with httpx2.AsyncClient() as client:
            address = f"http://127.0.0.1:{self.port}/compat/cybergis/upload"
            answer = await client.post(address, data=form, files=files)
        return answer.status_code, answer.json()

    def announce_upload(self, size: int) -> int:
        """The code that is answered to an upload of so many bytes before any of them is sent."""
        connection = HTTPConnection(f"127.0.0.1:{self.port}")
        connection.putrequest("POST", "/compat/cybergis/upload")
        connection.putheader("Content-Type", "multipart/form-data; boundary=x")
        connection.putheader("Content-Length", str(size))
        connection.endheaders()
        return connection.getresponse().status
