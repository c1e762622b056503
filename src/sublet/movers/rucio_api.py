"""Calls of Rucio's HTTP API, and how its answers are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx2

from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.retries import TRY_AGAIN
from sublet.kernel.public_addresses import PublicOnly
from sublet.kernel.streams import read_up_to
from sublet.kernel.tls import trust_machine
from sublet.movers.http import WAITS
from sublet.movers.web_errors import describe_web_error

TOKEN = "X-Rucio-Auth-Token"  # noqa: S105 - the name of a header
TRIES = 3
PAUSE = 0.5  # seconds before the first retry, doubled each time
PATIENCE = 300.0  # seconds for all requests about one name
MOST_BYTES = 256 << 20  # of one answer
MOST_FILES = 100_000
READABLE = (
    "https",
    "davs",
    "root",
    "roots",
    "s3",
    "s3s",
    "http",
    "dav",
    "sftp",
    "file",
)  # protocols of storage


class RucioFailed(Exception):
    """The server did not tell what it was asked for: the words say why."""


@dataclass(frozen=True)
class RucioPlace:
    """One address that Rucio has for a file."""

    address: str
    is_tape: bool
    priority: int


@dataclass(frozen=True)
class RucioFile:
    """One file, and where it is."""

    scope: str
    name: str
    size: int | None
    checksum: str  # md5:… or adler32:…; empty: not known
    places: Sequence[RucioPlace] = ()  # best first


@dataclass(frozen=True)
class RucioClient:
    """Calls one server, as one person."""

    server: str  # https://rucio.example.org
    credential: Credential | None
    account: str = ""  # which of the person's accounts; empty: the server's default
    public_only: bool = True
    _token: dict[str, str] = field(default_factory=dict)

    async def find_files(self, scope: str, name: str) -> list[RucioFile]:
        """Return all files that a name stands for: the file itself, or those of a dataset or container."""
        trusted = trust_machine()
        transport = PublicOnly(verify=trusted) if self.public_only else None
        try:
            async with (
                asyncio.timeout(PATIENCE),
                httpx2.AsyncClient(
                    verify=trusted, transport=transport, timeout=WAITS, follow_redirects=False
                ) as client,
            ):  # a redirect would receive the token
                return await self._find_files(client, scope, name)
        except TimeoutError as error:
            raise RucioFailed(f"the Rucio server did not answer within {PATIENCE:.0f} s") from error

    async def _find_files(self, client: httpx2.AsyncClient, scope: str, name: str) -> list[RucioFile]:
        path = f"/dids/{quote(scope, safe='')}/{quote(name, safe='/')}"
        listed = read_files(await self._ask(client, "GET", f"{path}/files"))
        if len(listed) > MOST_FILES:
            raise RucioFailed(f"it has more than {MOST_FILES} files")
        found = await self._list_replicas(client, scope, name, READABLE)
        if any(key not in found for key in listed):  # to report the addresses that nothing here can read
            found = await self._list_replicas(client, scope, name, ()) | found
        return [found.get(key, file) for key, file in listed.items()]

    async def _list_replicas(
        self, client: httpx2.AsyncClient, scope: str, name: str, schemes: Sequence[str]
    ) -> dict[tuple[str, str], RucioFile]:
        asked: dict[str, Any] = {"dids": [{"scope": scope, "name": name}]}
        if schemes:
            asked["schemes"] = schemes
        found = read_files(await self._ask(client, "POST", "/replicas/list", asked))
        return {key: file for key, file in found.items() if file.places}

    async def _ask(self, client: httpx2.AsyncClient, method: str, path: str, asked: Any = None) -> list[Any]:
        headers = {"Accept": "application/x-json-stream", **await self._sign_in(client)}
        body = None if asked is None else json.dumps(asked).encode()
        if body is not None:
            headers["Content-Type"] = "application/json"
        return read_lines((await self._send(client, method, path, headers, body))[1])

    async def _sign_in(self, client: httpx2.AsyncClient) -> Mapping[str, str]:
        """Return the header with the token; a login is exchanged for a token once."""
        known = self.credential
        if known is None or self._token:
            return self._token
        if known.kind is CredentialKind.TOKEN:
            self._token[TOKEN] = known.secret
            return self._token
        login = {"X-Rucio-Username": known.user, "X-Rucio-Password": known.secret}
        if self.account:
            login["X-Rucio-Account"] = self.account
        headers, _ = await self._send(client, "GET", "/auth/userpass", login, None)
        if not headers.get(TOKEN):
            raise RucioFailed("the Rucio server gave no token for this login; name an account: …?account=NAME")
        self._token[TOKEN] = headers[TOKEN]
        return self._token

    async def _send(
        self, client: httpx2.AsyncClient, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[Mapping[str, str], bytes]:
        """Send a request with retries, and return the answer's headers and body."""
        for number in range(1, TRIES + 1):
            try:
                async with client.stream(method, self.server + path, headers=headers, content=body) as response:
                    answer = await _read(response)
            except httpx2.UnsupportedProtocol as error:
                raise RucioFailed(str(error)) from error
            except httpx2.TransportError as error:
                why = f"the Rucio server can't be asked: {describe_web_error(error)}"
            else:
                if response.is_success:
                    return response.headers, answer
                why = self._explain(response, answer)
                if response.status_code not in TRY_AGAIN:
                    break
            if number < TRIES:
                await asyncio.sleep(PAUSE * 2 ** (number - 1))
        raise RucioFailed(why)

    def _explain(self, response: httpx2.Response, answer: bytes) -> str:
        code = response.status_code
        why = f"the Rucio server answered {code}: {read_refusal(answer) or response.reason_phrase}"
        if response.is_redirect:
            return f"the Rucio server leads on to another address ({code}); name that one"
        if self.credential is None and code in (400, 401, 403):
            return f"{why}; keep what opens it: sublet credential add {self.server} --user NAME"
        return why


async def _read(response: httpx2.Response) -> bytes:
    content = await read_up_to(MOST_BYTES, response.aiter_bytes())
    if len(content) > MOST_BYTES:
        raise RucioFailed(f"the Rucio server's answer has more than {MOST_BYTES} bytes")
    return content


def read_lines(answer: bytes) -> list[Any]:
    """Parse an answer with one JSON value per line."""
    try:
        return [json.loads(line) for line in answer.splitlines() if line.strip()]
    except ValueError as error:
        raise RucioFailed("the Rucio server's answer can't be read: it is not JSON") from error


def read_refusal(answer: bytes) -> str:
    """Return the server's reason for a refusal; empty if it gave none."""
    try:
        refusal = json.loads(answer)
        return " ".join(str(refusal["ExceptionMessage"]).split())[:300].rstrip(".")
    except (ValueError, TypeError, KeyError):
        return ""


def read_files(rows: Sequence[Any]) -> dict[tuple[str, str], RucioFile]:
    """Parse files, by scope and name."""
    try:
        files = [_read_file(row) for row in rows]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RucioFailed("the Rucio server's answer can't be read: it is not a list of files") from error
    return {(file.scope, file.name): file for file in files}


def _read_file(row: Mapping[str, Any]) -> RucioFile:
    size = row.get("bytes")
    places = [
        RucioPlace(str(address), facts.get("type") == "TAPE", int(facts.get("priority") or 0))
        for address, facts in (row.get("pfns") or {}).items()
    ]
    places.sort(key=lambda place: (place.is_tape, place.priority))
    checksum = next((f"{kind}:{row[kind]}" for kind in ("md5", "adler32") if row.get(kind)), "")
    return RucioFile(str(row["scope"]), str(row["name"]), None if size is None else int(size), checksum, places)
