"""One Jupyter Server, through its REST API: its kernels and its files."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from sublet.kernel.errors import PlatformRefused
from sublet.kernel.streams import closing
from sublet.platforms.names import name_session
from sublet.platforms.rest import RestCalls

PIECE = 3 << 20  # bytes of a file that are sent at a time; a multiple of 3, for Base64
HUB_VERSION, REPORT, OWN_SERVER = "x-jupyterhub-version", "/security/csp-report", "TornadoServer"  # of its answers
SLOW = 120.0  # seconds for a kernel to start


@dataclass(frozen=True, slots=True)
class KernelSpecs:
    """The kernels that a server can start: name → language."""

    default: str
    names: Mapping[str, str]

    def find(self, name: str, language: str) -> str:
        """Return the kernel that a notebook names, or the server's own for its language; empty if there is none."""
        if name in self.names and self.names[name] == language:
            return name
        speaking = sorted(each for each, spoken in self.names.items() if spoken == language)
        return self.default if self.default in speaking else next(iter(speaking), "")


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file or a folder on a server."""

    path: str  # below the session's working directory there
    modified: str  # as the server writes it
    size: int
    is_folder: bool = False


def is_jupyters(answer: httpx2.Response) -> bool:
    """Whether an answer is from a hub or a server, not from a proxy in front of it.

    The proxy of a hub that is restarting knows no paths for a moment, and says 404 for everything.
    """
    headers = answer.headers
    if HUB_VERSION in headers or REPORT in headers.get("content-security-policy", ""):
        return True
    is_json = headers.get("content-type", "").startswith("application/json")
    return is_json or headers.get("server", "").startswith(OWN_SERVER)


class ServerApi:
    """Calls to a server that is ready."""

    def __init__(self, calls: RestCalls, address: str, folder: str) -> None:
        """Set the server's address, and the `folder` of this service's sessions below the server's own directory."""
        self.calls, self.address, self.folder = calls, address.rstrip("/"), folder

    def _api(self, *parts: str) -> str:
        return "/".join((self.address, "api", *(quote(part.strip("/")) for part in parts)))

    def directory(self, key: str) -> str:
        """Return a session's directory there."""
        return f"{self.folder}/{name_session(key)}"

    def channels(self, kernel: str, session: str) -> str:
        """Return the WebSocket URL of a kernel.

        Reconnecting as the same session delivers the messages that were missed.
        """
        path = self.address.removeprefix(self.calls.address)
        query = f"session_id={quote(session, safe='')}"
        return self.calls.locate_socket(f"{path}/api/kernels/{quote(kernel, safe='')}/channels?{query}")

    # Kernels

    async def read_version(self) -> str:
        """Return the server's version."""
        return str((await self.calls.call("GET", self._api())).json().get("version", "unknown"))

    async def list_kernelspecs(self) -> KernelSpecs:
        """List the kernels that the server can start."""
        answer = (await self.calls.call("GET", self._api("kernelspecs"))).json()
        specs: Mapping[str, Any] = answer.get("kernelspecs") or {}
        names = {name: str(spec["spec"].get("language", "")).lower() for name, spec in specs.items()}
        return KernelSpecs(str(answer.get("default", "")), names)

    async def have_kernel(self, path: str, name: str) -> str:
        """Return the ID of the kernel that belongs to a path, started unless there is one."""
        body = {"path": path, "name": path.rpartition("/")[2], "type": "notebook", "kernel": {"name": name}}
        answer = (await self.calls.call("POST", self._api("sessions"), body, seconds=SLOW)).json()
        kernel: Mapping[str, Any] = answer.get("kernel") or {}
        if not kernel.get("id"):
            raise PlatformRefused(platform=self.calls.platform, why=f"it started no kernel {name}")
        return str(kernel["id"])

    async def has_kernel(self, kernel: str) -> bool:
        """Whether a kernel exists."""
        return (await self.calls.call("GET", self._api("kernels", kernel), allow=(404,))).is_success

    async def end_kernels(self, key: str) -> None:
        """Shut down all kernels of a session, with the processes in their process groups."""
        for session in (await self.calls.call("GET", self._api("sessions"))).json():
            if str(session.get("path", "")).startswith(f"{self.directory(key)}/"):
                await self.calls.call("DELETE", self._api("sessions", session["id"]), allow=(404,), seconds=SLOW)

    # Files

    async def make_folder(self, path: str) -> None:
        """Make a folder and its parents, unless they exist."""
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            whole = "/".join(parts[:count])
            await self.calls.call("PUT", self._api("contents", whole), {"type": "directory"})

    async def upload(self, source: Path, path: str) -> str:
        """Send a file, and return its modification time on the server."""
        modified, size = "", (await asyncio.to_thread(source.stat)).st_size
        with source.open("rb") as file:
            for number, content in _list_pieces(file.read, size):
                body: dict[str, Any] = {
                    "type": "file",
                    "format": "base64",
                    "content": base64.b64encode(content).decode(),
                }
                body |= {"chunk": number} if number else {}
                modified = (await self.calls.call("PUT", self._api("contents", path), body)).json()["last_modified"]
        return modified

    async def list_files(self, path: str) -> list[ServerFile]:
        """List all files and folders below a folder."""
        listed, waiting = [], [path.strip("/")]
        while waiting:
            folder = waiting.pop()
            answer = await self.calls.call("GET", f"{self._api('contents', folder)}?content=1", allow=(404,))
            if not answer.is_success:
                continue
            for model in answer.json().get("content") or ():
                where = str(model["path"])
                is_folder = model["type"] == "directory"
                waiting += [where] if is_folder else []
                size, below = int(model.get("size") or 0), where.removeprefix(f"{path.strip('/')}/")
                listed.append(ServerFile(below, str(model["last_modified"]), size, is_folder))
        return listed

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """Read a file in pieces."""
        address = "/".join((self.address, "files", quote(path)))
        async with self.calls.stream(address) as answer, closing(answer.aiter_bytes()) as pieces:
            async for piece in pieces:
                yield piece

    async def make_page(self, path: str) -> bytes | None:
        """Convert a notebook there to an HTML page; None if the server can't."""
        answer = await self.calls.call(
            "GET", "/".join((self.address, "nbconvert/html", quote(path))), allow=(400, 404, 500, 501), seconds=SLOW
        )
        return answer.content if answer.is_success else None

    async def has_folder(self, path: str) -> bool:
        """Whether a folder exists."""
        answer = await self.calls.call("GET", f"{self._api('contents', path)}?content=0", allow=(404,))
        return answer.is_success

    async def remove(self, path: str) -> None:
        """Remove a path; a server may put it into its own trash."""
        await self.calls.call("DELETE", self._api("contents", path), allow=(400, 404))

    async def list_sessions_left(self, age: timedelta) -> list[tuple[str, datetime | None]]:
        """List the names of sessions that have had a directory there for at least `age`."""
        answer = await self.calls.call("GET", f"{self._api('contents', self.folder)}?content=1", allow=(404,))
        before = datetime.now(UTC) - age
        left: list[tuple[str, datetime | None]] = []
        for model in (answer.json().get("content") or ()) if answer.is_success else ():
            since = datetime.fromisoformat(str(model["last_modified"]).replace("Z", "+00:00"))
            if model["type"] == "directory" and since <= before:
                left.append((str(model["name"]), since))
        return left


def _list_pieces(read: Any, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield a file's pieces with the server's numbers: 0 for a whole file, -1 for the last of many pieces."""
    if size <= PIECE:
        yield 0, read()
        return
    number, left = 1, size
    while left > PIECE:
        content = read(PIECE)
        left -= len(content)
        yield number, content
        number += 1
    yield -1, read()
