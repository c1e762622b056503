"""What a Rucio server answers becomes files and replicas, with recorded answers of a real one; and when it doesn't."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.kernel.errors import DataNotThere
from sublet.movers import rucio_api
from sublet.movers.port import SIMPLE, Policy
from sublet.movers.rucio import RucioMover
from tests import threads

pytestmark = pytest.mark.anyio
RECORDED = Path(__file__).parents[1] / "recorded" / "rucio"
TOKEN = "root-marie-1234"


class Rucio(BaseHTTPRequestHandler):
    """Answers as a real server did, to whom it knows; and badly for some names."""

    asked: ClassVar[list[tuple[str, str, str]]] = []
    busy: ClassVar[list[int]] = []  # codes that are answered first

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, self.headers.get("X-Rucio-Auth-Token") or ""))
        if self.busy:
            return self._answer(self.busy.pop(), b"")
        if self.path == "/auth/userpass":
            is_known = self.headers["X-Rucio-Password"] == "radium" and self.headers["X-Rucio-Account"] == "root"
            return self._answer(200 if is_known else 401, b"", token=TOKEN if is_known else "")
        if self.path.startswith("/dids/ska/moved"):
            return self._answer(302, b"", location="https://elsewhere.example.org/")
        if self.path.startswith("/dids/ska/page"):
            return self._answer(200, b"<html>")
        if self.path == "/dids/ska/survey/files":
            return self._answer(200, (RECORDED / "files-dataset.jsonl").read_bytes())
        if self.path == "/replicas/list":
            return self._answer(200, (RECORDED / "replicas-dataset.jsonl").read_bytes())
        return self._answer(404, (RECORDED / "not-found.json").read_bytes())

    def do_POST(self) -> None:
        self.do_GET()

    def _answer(self, code: int, body: bytes, token: str = "", location: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (("X-Rucio-Auth-Token", token), ("Location", location)):
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        return


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Rucio)
    with threads.serving(server):
        yield f"127.0.0.1:{server.server_port}"


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rucio_api, "PAUSE", 0.0)
    Rucio.asked.clear()
    Rucio.busy.clear()


def mover(address: str, secret: str = "radium") -> RucioMover:
    login = Credential(f"rucio+http://{address}", CredentialKind.LOGIN, "marie", secret)
    return RucioMover(Policy(public_only=False, credentials=[login]))


def named(address: str, name: str) -> Data:
    return Data("cube", SIMPLE, f"rucio+http://{address}/ska:{name}?account=root")


async def test_a_dataset_is_its_files_with_their_replicas_sizes_and_checksums(address: str) -> None:
    files = await mover(address).resolve(named(address, "survey"))
    assert [(file.path, len(file.replicas)) for file in files] == [("b.fits", 1), ("map.fits", 2)]
    assert [replica.checksum for replica in files[1].replicas] == ["adler32:0000000a"] * 2
    assert [token for _, _, token in Rucio.asked] == ["", TOKEN, TOKEN]  # one login serves all questions


async def test_a_server_that_is_busy_for_a_moment_is_asked_again(address: str) -> None:
    Rucio.busy += [503, 500]
    assert len(await mover(address).resolve(named(address, "survey"))) == 2
    Rucio.busy += [503] * 3
    with pytest.raises(DataNotThere, match="answered 503"):
        await mover(address).resolve(named(address, "survey"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "404: Data identifier 'ska:nothing' not found"),
        ("moved", "leads on to another address"),  # which would be shown the token
        ("page", "is not JSON"),
    ],
)
async def test_other_answers_are_told(address: str, name: str, words: str) -> None:
    with pytest.raises(DataNotThere, match=words):
        await mover(address).resolve(named(address, name))


async def test_a_wrong_password_and_a_private_server_are_refused_without_repeating_secrets(address: str) -> None:
    with pytest.raises(DataNotThere, match="answered 401") as refused:
        await mover(address, "polonium").resolve(named(address, "survey"))
    assert "polonium" not in str(refused.value)
    with pytest.raises(DataNotThere, match="not a public address"):
        await RucioMover(Policy()).resolve(named(address, "survey"))


async def test_a_silent_server_is_given_up_in_time_and_a_dead_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rucio_api, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listening:  # nobody takes what comes in
        silent = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(DataNotThere, match="did not answer within"):
            await mover(silent).resolve(named(silent, "survey"))
    with pytest.raises(DataNotThere, match="can't be asked"):
        await mover("127.0.0.1:9").resolve(named("127.0.0.1:9", "survey"))
