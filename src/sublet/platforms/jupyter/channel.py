"""A kernel's WebSocket: requests and messages in Jupyter's own protocol."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

from sublet.kernel.errors import PlatformUnreachable, SubletError
from sublet.platforms.jupyter.server import ServerApi

LARGEST = 512 << 20  # bytes of one message
PROTOCOL = "5.3"
DEAD = ("restarting", "dead", "autorestarting")
PING = 30.0  # seconds between pings


class Disconnected(Exception):
    """The WebSocket is closed; the kernel goes on."""


class KernelDied(Exception):
    """The server says that the kernel has died."""


@dataclass(frozen=True)
class Message:
    """A message of a kernel."""

    kind: str
    parent: str  # the ID of the request that it belongs to
    content: dict[str, Any] = field(default_factory=dict)


class KernelChannel:
    """An open WebSocket to a kernel."""

    def __init__(self, socket: ClientConnection, session: str) -> None:
        """Use a socket; `session` is our ID for the kernel."""
        self._socket, self._session = socket, session

    async def execute(
        self, code: str, *, id: str = "", silent: bool = False, goes_on: bool = False, ask: dict[str, str] | None = None
    ) -> str:
        """Have code run and return the ID of the request; `ask` are expressions to evaluate as well."""
        content = {
            "code": code,
            "silent": silent,
            "store_history": not silent,
            "user_expressions": ask or {},
            "allow_stdin": False,
            "stop_on_error": not goes_on,
        }
        header = {
            "msg_id": id or uuid4().hex,
            "msg_type": "execute_request",
            "session": self._session,
            "username": "sublet",
            "version": PROTOCOL,
            "date": datetime.now(UTC).isoformat(),
        }
        whole = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        try:
            await self._socket.send(json.dumps(whole | {"buffers": []}))
        except WebSocketException as error:
            raise Disconnected(str(error)) from error
        return header["msg_id"]

    async def receive(self) -> Message:
        """Return the next message; raise KernelDied if it says so."""
        try:
            text = await self._socket.recv()
        except WebSocketException as error:
            raise Disconnected(str(error)) from error
        message = read_message(text)
        if message.kind == "status" and message.content.get("execution_state") in DEAD:
            raise KernelDied(message.content["execution_state"])
        return message


def read_message(text: str | bytes) -> Message:
    """Read a message: JSON, or a binary form with JSON and buffers after a list of offsets."""
    if isinstance(text, bytes):
        count = struct.unpack("!I", text[:4])[0]
        begins = struct.unpack(f"!{count}I", text[4 : 4 * (count + 1)])
        text = text[begins[0] : begins[1] if count > 1 else None].decode()
    whole = json.loads(text)
    header, parent = whole.get("header") or {}, whole.get("parent_header") or {}
    kind = str(header.get("msg_type") or whole.get("msg_type", ""))
    return Message(kind, str(parent.get("msg_id", "")), whole.get("content") or {})


@asynccontextmanager
async def open_channel(api: ServerApi, kernel: str, session: str) -> AsyncIterator[KernelChannel]:
    """Open a WebSocket to a kernel, which outlives it."""
    try:
        socket = await connect(
            api.channels(kernel, session),
            additional_headers=await api.calls.authorize(),
            max_size=LARGEST,
            ping_interval=PING,
            open_timeout=30,
            proxy=None,
        )
    except InvalidStatus as error:
        raise _refuse(api, error) from error
    except (OSError, TimeoutError, InvalidHandshake) as error:
        raise PlatformUnreachable(platform=api.calls.platform, why=f"a kernel can't be reached: {error}") from error
    async with socket:
        yield KernelChannel(socket, session)


def _refuse(api: ServerApi, error: InvalidStatus) -> SubletError:
    status = error.response.status_code
    if status == 404:
        return PlatformUnreachable(platform=api.calls.platform, why="the kernel is not there")
    return api.calls.refuse(status, bytes(error.response.body or b""))
