"""Large files of Git LFS: a pointer in the repository names each, and a server says where to fetch it."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2

from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, credential_for
from sublet.data.model.retries import TRY_AGAIN
from sublet.kernel.errors import DataNotThere
from sublet.kernel.streams import read_up_to
from sublet.movers.arrival import check_arrived, missing, without_secrets
from sublet.movers.http import HttpMover
from sublet.movers.port import Progress
from sublet.movers.sending import describe_refusal, sign_in
from sublet.movers.web_errors import describe_web_error

VERSION = "version https://git-lfs.github.com/spec/v1\n"
POINTER = re.compile(rf"{re.escape(VERSION)}(?:ext-\d.*\n)*oid sha256:([0-9a-f]{{64}})\nsize (\d{{1,18}})\n?")
LONGEST_POINTER = 1024  # bytes; longer files aren't pointers
MEDIA_TYPE = "application/vnd.git-lfs+json"
MOST_AT_ONCE = 100  # objects per request, as in git-lfs
LONGEST_ANSWER = 1 << 24  # bytes
LONGEST_REFUSAL = 300  # characters of a server's refusal that are repeated
TRIES = 3
SIDE_BY_SIDE = 8  # files that are fetched in parallel
# Headers that the client sets itself
NOT_SENT = frozenset({"host", "content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True)
class LargeFile:
    """A file that an LFS pointer stands for."""

    path: str  # the pointer's path in the repository
    digest: str  # sha256, in hexadecimal
    size: int


@dataclass(frozen=True)
class LfsServer:
    """The server of a repository's large files."""

    address: str
    credential: Credential | None = None


def read_pointer(path: str, content: bytes) -> LargeFile | None:
    """Parse a small file as an LFS pointer; return None if it is an ordinary file."""
    if len(content) > LONGEST_POINTER or not (match := POINTER.fullmatch(content.decode(errors="replace"))):
        return None
    return LargeFile(path, match[1], int(match[2]))


def find_server(repository: str, configured: str, credentials: Sequence[Credential]) -> LfsServer:
    """Return the server that the repository's settings name, or the default one for its address."""
    if configured:
        return LfsServer(configured.rstrip("/"), credential_for(credentials, configured))
    plain = repository.rstrip("/")
    address = plain if urlsplit(plain).scheme == "file" else f"{plain.removesuffix('.git')}.git/info/lfs"
    return LfsServer(address, credential_for(credentials, repository) or credential_for(credentials, address))


class LfsHeaders(httpx2.Auth):
    """Sends the headers that the LFS server prescribed, but not after a redirect."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """Leave out the headers that the client sets itself."""
        self._headers = {name: text for name, text in headers.items() if name.lower() not in NOT_SENT}

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the headers."""
        request.headers.update(self._headers)
        yield request


class LargeFiles:
    """The large files of one repository, kept in `store` by digest until all of them are there."""

    def __init__(self, http: HttpMover, data: Data, server: LfsServer, store: Path) -> None:
        """Remember the store, which may hold files that an earlier attempt brought."""
        self._http, self._data, self._server, self._store = http, data, server, store

    async def bring(self, files: Sequence[LargeFile], tree: Path, progress: Progress) -> None:
        """Replace each pointer by its file; raise DataNotThere for the first that can't be brought."""
        await asyncio.to_thread(self._store.mkdir, parents=True, exist_ok=True)
        wanted = {file.digest: file for file in files}
        scheme = urlsplit(self._server.address).scheme.lower()
        if scheme == "file":
            for file in wanted.values():
                await asyncio.to_thread(self._copy, file)
        elif scheme in ("https", "http"):
            await self._download(list(wanted.values()), progress)
        else:
            raise missing(self._data, f"its Git LFS server is {self._server.address}, which only git-lfs can speak to")
        for file in files:
            await asyncio.to_thread(self._put, file, tree / file.path)

    def _put(self, file: LargeFile, pointer: Path) -> None:
        """Put a copy in the pointer's place, with its mode; other pointers may need the same file."""
        copy = self._store / f"{file.digest}.copy"
        shutil.copyfile(self._store / file.digest, copy)
        copy.chmod(pointer.lstat().st_mode & 0o777)
        copy.replace(pointer)

    def _copy(self, file: LargeFile) -> None:
        """Copy a file from git-lfs' own storage in a repository on this machine."""
        if self._http.policy.file_roots is not None:
            raise missing(self._data, "its Git LFS server is a folder of this machine, from where nothing is brought")
        root = Path(unquote(urlsplit(self._server.address).path))
        for folder in (root / "lfs", root / ".git" / "lfs"):
            source = folder / "objects" / file.digest[:2] / file.digest[2:4] / file.digest
            if source.is_file():
                shutil.copyfile(source, self._store / file.digest)
                check_arrived(self._as_data(file), self._store / file.digest)
                return
        raise missing(self._data, f"{file.path} is in Git LFS, and not among the files of {root}")

    async def _download(self, files: Sequence[LargeFile], progress: Progress) -> None:
        total, came = sum(file.size for file in files), dict[str, int]()
        turns = asyncio.Semaphore(SIDE_BY_SIDE)

        def tell(digest: str, done: int) -> None:
            came[digest] = done
            progress(sum(came.values()), total)

        async def bring(file: LargeFile, action: Mapping[str, Any]) -> None:
            async with turns:
                await self._bring_one(file, action, lambda done, _: tell(file.digest, done))

        for start in range(0, len(files), MOST_AT_ONCE):
            some = files[start : start + MOST_AT_ONCE]
            actions = await self._ask(some)
            try:
                async with asyncio.TaskGroup() as group:
                    for file in some:
                        group.create_task(bring(file, actions[file.digest]))
            except ExceptionGroup as several:
                raise several.exceptions[0] from several

    async def _bring_one(self, file: LargeFile, action: Mapping[str, Any], progress: Progress) -> None:
        """Download a file; if that is refused, ask once for a new address, as the first may have expired."""
        try:
            await self._fetch(file, action, progress)
        except DataNotThere:
            action = (await self._ask([file]))[file.digest]
            try:
                await self._fetch(file, action, progress)
            except DataNotThere as error:
                why = str(error.values["why"])
                raise missing(self._data, f"{file.path} is in Git LFS, and could not be brought: {why}") from error

    async def _fetch(self, file: LargeFile, action: Mapping[str, Any], progress: Progress) -> None:
        address, headers = action["href"], action.get("header") or {}
        is_signed = any(name.lower() == "authorization" for name in headers)
        credential = None if is_signed else credential_for(self._http.policy.credentials, address)
        if credential is None and not is_signed and _is_below(address, self._server.address):
            credential = self._server.credential
        auth = LfsHeaders(headers) if headers else sign_in(credential)
        place = self._store / file.digest
        async with self._http.client(auth) as client:
            await self._http.bring_file(client, replace(self._as_data(file), location=address), place, progress)

    def _as_data(self, file: LargeFile) -> Data:
        return replace(self._data, size=file.size, checksum=f"sha256:{file.digest}")

    async def _ask(self, files: Sequence[LargeFile]) -> Mapping[str, Mapping[str, Any]]:
        """Ask the server where each file can be fetched, by digest."""
        asked = {
            "operation": "download",
            "transfers": ["basic"],
            "hash_algo": "sha256",
            "objects": [{"oid": file.digest, "size": file.size} for file in files],
        }
        for number in range(1, TRIES + 1):
            try:
                answer = await self._post(asked)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                why = describe_web_error(error) if isinstance(error, httpx2.HTTPError) else str(error)
                is_final = not isinstance(error, httpx2.NetworkError | httpx2.TimeoutException)
            else:
                if answer.is_success:
                    return self._read(answer, files)
                why, is_final = _describe(answer), answer.status_code not in TRY_AGAIN
            if is_final:
                break
            await asyncio.sleep(self._http.pause * 2 ** (number - 1))
        raise missing(self._data, f"its Git LFS server {without_secrets(self._server.address)} refused: {why}")

    async def _post(self, asked: Mapping[str, Any]) -> httpx2.Response:
        headers = {"accept": MEDIA_TYPE, "content-type": MEDIA_TYPE}
        address = f"{self._server.address}/objects/batch"
        async with (
            self._http.client(sign_in(self._server.credential)) as client,
            client.stream("POST", address, json=asked, headers=headers) as answer,
        ):
            body = await read_up_to(LONGEST_ANSWER, answer.aiter_bytes())
            if len(body) > LONGEST_ANSWER:
                raise missing(self._data, "its Git LFS server gave an answer without end")
            return httpx2.Response(
                answer.status_code, headers={"content-type": answer.headers.get("content-type", "")}, content=body
            )

    def _read(self, answer: httpx2.Response, files: Sequence[LargeFile]) -> Mapping[str, Mapping[str, Any]]:
        try:
            rows = {row["oid"]: row for row in answer.json()["objects"]}
            return {file.digest: self._read_action(file, rows.get(file.digest, {})) for file in files}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise missing(self._data, "its Git LFS server gave an answer that can't be read") from error

    def _read_action(self, file: LargeFile, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if refusal := row.get("error"):
            why = f"{refusal.get('code', '')} {refusal.get('message', '')}".strip()
            raise missing(self._data, f"{file.path} is in Git LFS, whose server answered {why[:LONGEST_REFUSAL]}")
        action: Mapping[str, Any] = (row.get("actions") or {}).get("download") or {}
        if not str(action.get("href", "")).startswith(("https://", "http://")):
            raise missing(self._data, f"{file.path} is in Git LFS, whose server does not say where it is")
        return action


def _describe(answer: httpx2.Response) -> str:
    try:
        return f"{answer.status_code} {answer.json()['message']}"
    except (ValueError, TypeError, KeyError):
        return describe_refusal(answer)


def _is_below(address: str, server: str) -> bool:
    """Whether two addresses have the same host and protocol."""
    return urlsplit(address)[:2] == urlsplit(server)[:2]
