"""One Jupyter Server by its REST API: its kernels and its files."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sublet.kernel.errors import PlatformRefused
from sublet.kernel.streams import closing
from sublet.platforms.names import name_session
from sublet.platforms.rest import RestCalls

PIECE = 3 << 20  # bytes of a file that are sent at a time; a multiple of 3, as Base64 wants it
SLOW = 120.0  # seconds that a kernel may take to start


@dataclass(frozen=True, slots=True)
class KernelSpecs:
    """The kernels that a server can start: name → language."""

    default: str
    names: Mapping[str, str]

    def find(self, name: str, language: str) -> str:
        """The one that a notebook names; else the server's own for its language; empty: none."""
        if name in self.names and self.names[name] == language:
            return name
        speaking = sorted(each for each, spoken in self.names.items() if spoken == language)
        return self.default if self.default in speaking else next(iter(speaking), "")


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file or a folder on a server."""

    path: str  # below the session's working directory there
    modified: str  # as the server says it
    size: int
    is_folder: bool = False


class ServerApi:
    """Calls to a server that is ready."""

    def __init__(self, calls: RestCalls, address: str, folder: str) -> None:
        """`folder` is where the sessions of this service lie there, below the server's own directory."""
        self.calls, self.address, self.folder = calls, address.rstrip("/"), folder

    def _api(self, *parts: str) -> str:
        return "/".join((self.address, "api", *(quote(part.strip("/")) for part in parts)))

    def directory(self, key: str) -> str:
        """A session's directory there."""
        return f"{self.folder}/{name_session(key)}"

    def channels(self, kernel: str, session: str) -> str:
        """The WebSocket of a kernel; whoever comes again as the same session gets what was missed."""
        path = self.address.removeprefix(self.calls.address)
        query = f"session_id={quote(session, safe='')}"
        return self.calls.locate_socket(f"{path}/api/kernels/{quote(kernel, safe='')}/channels?{query}")

    # Kernels

    async def read_version(self) -> str:
        """The server's version."""
        return str((await self.calls.call("GET", self._api())).json().get("version", "unknown"))

    async def list_kernelspecs(self) -> KernelSpecs:
        """The kernels that it can start."""
        answer = (await self.calls.call("GET", self._api("kernelspecs"))).json()
        specs: Mapping[str, Any] = answer.get("kernelspecs") or {}
        names = {name: str(spec["spec"].get("language", "")).lower() for name, spec in specs.items()}
        return KernelSpecs(str(answer.get("default", "")), names)

    async def have_kernel(self, path: str, name: str) -> str:
        """The kernel that belongs to a path there, started unless there is one; its id."""
        body = {"path": path, "name": path.rpartition("/")[2], "type": "notebook", "kernel": {"name": name}}
        answer = (await self.calls.call("POST", self._api("sessions"), body, seconds=SLOW)).json()
        kernel: Mapping[str, Any] = answer.get("kernel") or {}
        if not kernel.get("id"):
            raise PlatformRefused(platform=self.calls.platform, why=f"it started no kernel {name}")
        return str(kernel["id"])

    async def has_kernel(self, kernel: str) -> bool:
        """Whether a kernel is there."""
        return (await self.calls.call("GET", self._api("kernels", kernel), allow=(404,))).is_success

    async def end_kernels(self, key: str) -> None:
        """Shut down every kernel that belongs to a session, with what it has started in its process group."""
        for session in (await self.calls.call("GET", self._api("sessions"))).json():
            if str(session.get("path", "")).startswith(f"{self.directory(key)}/"):
                await self.calls.call("DELETE", self._api("sessions", session["id"]), allow=(404,), seconds=SLOW)

    # Files

    async def make_folder(self, path: str) -> None:
        """Make a folder, and those above it, unless they are there."""
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            whole = "/".join(parts[:count])
            await self.calls.call("PUT", self._api("contents", whole), {"type": "directory"})

    async def upload(self, source: Path, path: str) -> str:
        """Send a file; when the server says that it was modified."""
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
        """All files below a folder there, and the folders."""
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
        """A file, in pieces."""
        address = "/".join((self.address, "files", quote(path)))
        async with self.calls.stream(address) as answer, closing(answer.aiter_bytes()) as pieces:
            async for piece in pieces:
                yield piece

    async def make_page(self, path: str) -> bytes | None:
        """A notebook that is there as a page, where the server can make one."""
        answer = await self.calls.call(
            "GET", "/".join((self.address, "nbconvert/html", quote(path))), allow=(400, 404, 500, 501), seconds=SLOW
        )
        return answer.content if answer.is_success else None

    async def has_folder(self, path: str) -> bool:
        """Whether a folder is there."""
        answer = await self.calls.call("GET", f"{self._api('contents', path)}?content=0", allow=(404,))
        return answer.is_success

    async def remove(self, path: str) -> None:
        """Remove what is there; a server may put it into its own trash."""
        await self.calls.call("DELETE", self._api("contents", path), allow=(400, 404))

    async def list_sessions_left(self, age: timedelta) -> list[tuple[str, datetime | None]]:
        """The names of sessions that have had a directory there for so long."""
        answer = await self.calls.call("GET", f"{self._api('contents', self.folder)}?content=1", allow=(404,))
        before = datetime.now(UTC) - age
        left: list[tuple[str, datetime | None]] = []
        for model in (answer.json().get("content") or ()) if answer.is_success else ():
            since = datetime.fromisoformat(str(model["last_modified"]).replace("Z", "+00:00"))
            if model["type"] == "directory" and since <= before:
                left.append((str(model["name"]), since))
        return left


def _list_pieces(read: Any, size: int) -> Iterator[tuple[int, bytes]]:
    """A file's pieces, each with its number as the server counts them: 0 for a whole one, -1 for the last of many."""
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
