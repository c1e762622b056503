"""What is sent is sent again where a server leads, and a redirect never makes a GET of it that passes for success."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from sublet.data.model.credentials import Credential, CredentialKind
from sublet.kernel.errors import DataNotSent
from sublet.movers.http import HttpMover
from sublet.movers.port import Policy, Pushes
from sublet.movers.s3 import S3Mover
from sublet.movers.webdav import WebDavMover
from tests import threads
from tests.contract.moving import content
from tests.contract.test_movers import nothing

pytestmark = pytest.mark.anyio


@dataclass
class Leading:
    """A server that answers what writes with a redirect, and everything else with success."""

    address: str = ""
    code: int = 200
    to: str = "/elsewhere"
    asked: list[tuple[str, str, bytes, str]] = field(default_factory=list)  # method, path, body, Authorization


class LeadingHandler(BaseHTTPRequestHandler):
    """Answers as `leading` says."""

    leading: ClassVar[Leading]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        known, body = self.leading, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        known.asked.append((self.command, self.path, body, self.headers.get("Authorization", "")))
        is_led = self.command == "PUT" and self.path != "/elsewhere"
        code = known.code if is_led else 404 if self.command == "PROPFIND" else 201
        self.send_response(code)
        if 300 <= code < 400:
            self.send_header("Location", known.to)
        self.end_headers()

    do_GET = do_PUT = do_MKCOL = do_PROPFIND = do_MOVE = _answer  # noqa: N815


@contextmanager
def lead(code: int = 200, to: str = "/elsewhere") -> Iterator[Leading]:
    leading = Leading(code=code, to=to)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (LeadingHandler,), {"leading": leading}))
    leading.address = f"127.0.0.1:{server.server_port}"
    with threads.serving(server):
        yield leading


def make_mover(scheme: str, address: str) -> tuple[Pushes, str]:
    place = f"{scheme}://{address}"
    if scheme == "s3+http":
        keys = Credential(place, CredentialKind.S3, "sublet-tests", "secret")
        return S3Mover(Policy(public_only=False, credentials=[keys])), f"{place}/bucket/sum.txt"
    login = Credential(place, CredentialKind.LOGIN, "marie", "secret")
    mover = HttpMover if scheme == "http" else WebDavMover
    return mover(Policy(public_only=False, credentials=[login])), f"{place}/runs/sum.txt"


@pytest.mark.parametrize("scheme", ["http", "dav", "s3+http"])
@pytest.mark.parametrize("code", [301, 302, 303])
async def test_a_login_page_that_answers_in_place_of_the_storage_has_not_stored_a_result(
    scheme: str, code: int
) -> None:
    with lead(code, "/login?back=secret") as server:
        mover, address = make_mover(scheme, server.address)
        with pytest.raises(DataNotSent, match=rf"answered {code} .*: it leads to /login, which is not followed"):
            await mover.push(content("sum.txt", b"42"), address, nothing)
        assert not [path for method, path, *_ in server.asked if path.startswith("/login")]


@pytest.mark.parametrize("code", [307, 308])
async def test_what_is_sent_is_sent_again_to_where_a_storage_server_leads(code: int) -> None:
    with lead(code) as server:
        mover, address = make_mover("http", server.address)
        await mover.push(content("sum.txt", b"42" * 100_000), address, nothing)
        assert [(path, len(body)) for _, path, body, _ in server.asked] == [
            ("/runs/sum.txt", 200_000),
            ("/elsewhere", 200_000),
        ]
        assert all(shown for *_, shown in server.asked), "it is the same server, which knows who sends"


async def test_another_server_is_not_shown_what_opens_the_first() -> None:
    with ExitStack() as stack:
        store = stack.enter_context(lead())
        server = stack.enter_context(lead(307, f"http://{store.address}/elsewhere"))
        mover, address = make_mover("http", server.address)
        await mover.push(content("sum.txt", b"42"), address, nothing)
        assert [asked[1:] for asked in store.asked] == [("/elsewhere", b"42", "")]


async def test_an_address_that_leads_on_for_ever_is_told() -> None:
    with lead(307, "/runs/again") as server:
        mover, address = make_mover("http", server.address)
        with pytest.raises(DataNotSent, match="leads on and on"):
            await mover.push(content("sum.txt", b"42"), address, nothing)
        assert len(server.asked) == 6
