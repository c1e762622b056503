"""What a server says of its files' checksums is compared with what came."""

import os
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED
from tests import threads

pytestmark = pytest.mark.anyio
BODY = b"what the server sends" * 1000
GOOD = f"adler32={zlib.adler32(BODY):08x}"


class Keeper(BaseHTTPRequestHandler):
    """A server that keeps checksums; those of /wrong are of another file."""

    server_version = "dCache/9.2"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        if self.headers.get("Want-Digest"):
            self.send_header("Digest", GOOD if self.path == "/good" else "adler32=00000001")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(BODY)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *words: object) -> None:
        return


async def test_a_file_that_is_not_what_its_server_says_it_is_is_refused(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Keeper)
    with threads.serving(server):
        address = f"http://127.0.0.1:{server.server_port}"
        await HttpMover(UNLIMITED).bring(Data("a", SIMPLE, f"{address}/good"), tmp_path, lambda done, total: None)
        with pytest.raises(DataNotThere, match="adler32:00000001 was expected"):
            await HttpMover(UNLIMITED).bring(Data("b", SIMPLE, f"{address}/wrong"), tmp_path, lambda done, total: None)
    assert os.listdir(tmp_path) == ["good"]
