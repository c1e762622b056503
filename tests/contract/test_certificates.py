"""A server whose certificate can't be trusted is asked once, and the reason says what is wrong and what to do."""

from __future__ import annotations

import http.server
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sublet.booking.model.request import Data
from sublet.kernel import tls
from sublet.kernel.errors import DataNotSent, DataNotThere
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED
from sublet.movers.webdav import WebDavMover
from sublet.platforms.port import quietly
from sublet.reach.git import Git
from tests import threads
from tests.contract.moving import content

pytestmark = pytest.mark.anyio
HERE = ipaddress.ip_address("127.0.0.1")
ANOTHER = ipaddress.ip_address("127.0.0.2")
DAY = timedelta(days=1)


class Authority(NamedTuple):
    """It signs the certificates of servers."""

    name: x509.Name  # of its own
    key: ec.EllipticCurvePrivateKey

    def sign(self, key: ec.EllipticCurvePrivateKey, *more: tuple[x509.ExtensionType, bool], ends: timedelta) -> bytes:
        """Return a certificate that began ten days ago."""
        now = datetime.now(UTC)
        name = self.name if key is self.key else x509.Name([])
        made = x509.CertificateBuilder(self.name, name, key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - 10 * DAY).not_valid_after(now + ends)
        for extension, is_critical in more:
            made = made.add_extension(extension, is_critical)
        return made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority() -> Authority:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority of these tests")])
    return Authority(name, ec.generate_private_key(ec.SECP256R1()))


@pytest.fixture
def authorities(authority: Authority, tmp_path: Path) -> Path:
    """A file that has this authority alone."""
    file = tmp_path / "authorities.pem"
    file.write_bytes(authority.sign(authority.key, (x509.BasicConstraints(True, None), True), ends=DAY))
    return file


class Handler(http.server.BaseHTTPRequestHandler):
    """Has five bytes at every address."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello" if self.command == "GET" else b"")

    do_HEAD = do_GET  # noqa: N815


class Server(http.server.ThreadingHTTPServer):
    """Counts who connects."""

    connections = 0

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands in a thread of the request's own."""
        self.connections += 1
        with self.context.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that don't trust it."""

    context: ssl.SSLContext


@contextmanager
def serve(authority: Authority, tmp_path: Path, address: Any = HERE, ends: timedelta = DAY) -> Iterator[Server]:
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.IPAddress(address)])
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "server.pem").write_bytes(secret + authority.sign(key, (names, False), ends=ends))
    server = Server(("127.0.0.1", 0), Handler)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(tmp_path / "server.pem")
    with threads.serving(server):
        yield server


@contextmanager
def trusting(authorities: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Name it in the environment."""
    tls._read.cache_clear()
    with monkeypatch.context() as changed:
        changed.setenv("SSL_CERT_FILE", str(authorities))
        yield
    tls._read.cache_clear()


async def read(mover: HttpMover, data: Data) -> None:
    [link] = (await mover.links(data)).links
    async for _ in mover.read(data, link, 0):
        pass


async def test_an_unknown_authority_is_named_as_the_reason_with_where_to_add_it(
    authority: Authority, tmp_path: Path
) -> None:
    why = "the authority that signed its certificate isn't trusted here.*SSL_CERT_FILE"
    with serve(authority, tmp_path) as server:
        address = f"127.0.0.1:{server.server_port}/hello"
        data, mover = Data("hello", SIMPLE, f"https://{address}"), HttpMover(UNLIMITED)
        with pytest.raises(DataNotThere, match=why):
            await mover.bring(data, tmp_path, quietly)
        assert server.connections == 1
        with pytest.raises(DataNotThere, match=why):
            await read(mover, data)
        with pytest.raises(DataNotSent, match=why):
            await mover.push(content("hello", b"hello"), f"https://{address}", quietly)
        with pytest.raises(DataNotSent, match=why):
            await WebDavMover(UNLIMITED).push(content("hello", b"hello"), f"davs://{address}", quietly)
        with pytest.raises(DataNotThere, match=why):
            await WebDavMover(UNLIMITED).bring(Data("in", SIMPLE, f"davs://{address}/"), tmp_path, quietly)


@pytest.mark.parametrize(
    ("address", "ends", "why"),
    [(HERE, -DAY, "its certificate has expired"), (ANOTHER, DAY, "its certificate is for another IP address")],
)
async def test_a_trusted_authority_is_not_enough_for_an_expired_certificate_or_that_of_another_host(
    authority: Authority,
    authorities: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: Any,
    ends: timedelta,
    why: str,
) -> None:
    with serve(authority, tmp_path, address, ends) as server, trusting(authorities, monkeypatch):
        data = Data("hello", SIMPLE, f"https://127.0.0.1:{server.server_port}/hello")
        with pytest.raises(DataNotThere, match=why):
            await HttpMover(UNLIMITED).bring(data, tmp_path, quietly)
        assert server.connections == 1


async def test_authorities_that_the_environment_names_are_trusted_also_by_git(
    authority: Authority, authorities: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(authority, tmp_path) as server, trusting(authorities, monkeypatch):
        data = Data("hello", SIMPLE, f"https://127.0.0.1:{server.server_port}/hello")
        await HttpMover(UNLIMITED).bring(data, tmp_path, quietly)
        assert (tmp_path / "hello").read_text() == "hello"
        git = Git(tmp_path, "https", largest=1 << 20, seconds=30)
        said = await git.run("ls-remote", f"https://127.0.0.1:{server.server_port}/hello.git")
        assert "certificate" not in said.complaint
