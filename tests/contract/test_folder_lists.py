"""Folders on servers whose lists are odd: what can't be brought as it is there is refused, and nothing is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers import bounded, s3, xml_answers
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Links, Mover
from sublet.movers.s3 import S3Mover
from sublet.movers.webdav import WebDavMover
from tests import threads
from tests.contract.test_movers import nothing

pytestmark = pytest.mark.anyio
LONG = "n" * 256


class Lister(BaseHTTPRequestHandler):
    """Lists the same everywhere, and gives three bytes for every file."""

    files: ClassVar[list[tuple[str, str]]]  # name and size
    origin: ClassVar[str] = ""  # which WebDAV servers may give with each path
    is_endless: ClassVar[bool] = False
    leads_on: ClassVar[bool] = False  # by redirects with a long page
    body: ClassVar[bytes] = b""  # in place of a list

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"abc"
        if self.body:
            body = self.body
        elif self.command == "PROPFIND":
            body = self._list_webdav()
        elif "list-type" in self.path:
            body = self._list_s3()
        self.send_response(308 if self.leads_on else 207 if self.command == "PROPFIND" else 200)
        if self.leads_on:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # whoever has read enough closes it
            self.wfile.write(body)

    do_GET = do_PROPFIND = _answer  # noqa: N815

    def _list_s3(self) -> bytes:
        rows = (f"<Contents><Key>f/{name}</Key><Size>{size}</Size></Contents>" for name, size in self.files)
        more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        return f"<ListBucketResult>{more if self.is_endless else ''}{''.join(rows)}</ListBucketResult>".encode()

    def _list_webdav(self) -> bytes:
        folder = "<D:resourcetype><D:collection/></D:resourcetype>"
        rows = [
            ("", folder),
            *((name, f"<D:getcontentlength>{size}</D:getcontentlength>") for name, size in self.files),
        ]
        entries = (
            f"<D:response><D:href>{self.origin}/f/{name}</D:href><D:propstat><D:prop>{known}</D:prop></D:propstat>"
            "</D:response>"
            for name, known in rows
        )
        return f'<D:multistatus xmlns:D="DAV:">{"".join(entries)}</D:multistatus>'.encode()


@contextmanager
def listing(*files: tuple[str, str], **fields: object) -> Iterator[str]:
    handler = type("Handler", (Lister,), {"files": files, **fields})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with threads.serving(server):
        yield f"127.0.0.1:{server.server_port}"


def make(kind: str, address: str) -> tuple[Mover, Data]:
    if kind == "s3":
        return S3Mover(UNLIMITED), Data("in", SIMPLE, f"s3+http://{address}/bucket/f/")
    return WebDavMover(UNLIMITED), Data("in", SIMPLE, f"dav://{address}/f/")


@pytest.mark.parametrize("kind", ["s3", "webdav"])
@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([("a", "many")], "size that is no number: 'many'"),
        ([("a", "-5")], "size that is no number: '-5'"),
        ([("a", "9" * 5000)], "size that is no number"),
        ([("a", "3"), ("a/b", "3")], "a file and a folder of one name: 'a'"),
        ([("a/b", "3"), ("a//b", "3")], "two of its files would have the same name here: 'a/b'"),
        ([(LONG, "3")], "whose name can't be used here"),
        ([(".sublet-incoming/x", "3")], "whose name can't be used here"),
    ],
)
async def test_what_would_not_be_the_same_folder_here_is_refused_with_the_reason(
    kind: str, files: list[tuple[str, str]], why: str, tmp_path: Path
) -> None:
    with listing(*files) as address:
        mover, data = make(kind, address)
        with pytest.raises(DataNotThere, match=why):
            await mover.bring(data, tmp_path, nothing)
        with pytest.raises(DataNotThere, match=why):
            await mover.links(data)  # type: ignore[attr-defined]
    assert not os.listdir(tmp_path)


async def test_a_version_in_a_list_is_the_one_that_comes_with_the_file_though_lists_may_omit_its_quotes() -> None:
    row = "<Contents><Key>f/a</Key><Size>3</Size><ETag>{}</ETag></Contents>"
    for listed in ("900150", "&quot;900150&quot;"):
        body = f"<ListBucketResult>{row.format(listed)}</ListBucketResult>".encode()
        with listing(body=body) as address:
            mover, data = make("s3", address)
            assert isinstance(mover, Links)
            [link] = (await mover.links(data)).links
        assert link.version == '"900150"'


async def test_a_server_behind_a_proxy_may_list_its_files_under_its_inner_name(tmp_path: Path) -> None:
    with listing(("a", "3"), origin="http://inner.invalid:8080") as address:
        mover, data = make("webdav", address)
        await mover.bring(data, tmp_path, nothing)
    assert os.listdir(tmp_path) == ["a"]


async def test_a_list_of_another_folder_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    with listing(("a", "3"), origin="http://inner.invalid/data") as address:
        mover, data = make("webdav", address)
        with pytest.raises(DataNotThere, match="lists another folder: /data/f/"):
            await mover.bring(data, tmp_path, nothing)


async def test_a_list_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(s3, "MOST_FILES", 5)
    with listing(("a", "3"), ("b", "3"), is_endless=True) as address:
        mover, data = make("s3", address)
        with pytest.raises(DataNotThere, match="files; bring an archive"):
            await mover.bring(data, tmp_path, nothing)


async def test_a_list_of_empty_pages_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(s3, "MOST_PAGES", 5)
    with listing(is_endless=True) as address:
        mover, data = make("s3", address)
        with pytest.raises(DataNotThere, match="list has more than 5 pages"):
            await mover.bring(data, tmp_path, nothing)


@pytest.mark.parametrize("kind", ["s3", "webdav"])
async def test_an_answer_that_is_too_long_for_a_list_is_not_read_into_memory(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bounded, "MOST_ANSWER", 1 << 20)
    with listing(body=bytes(1 << 24)) as address:
        mover, data = make(kind, address)
        with pytest.raises(DataNotThere, match="the server's answer has more than 1048576 bytes"):
            await mover.bring(data, tmp_path, nothing)
    monkeypatch.setattr(xml_answers, "MOST_TAGS", 1000)
    with listing(body=b"<a>" + b"<b/>" * 1000 + b"</a>") as address:
        mover, data = make(kind, address)
        with pytest.raises(DataNotThere, match="list can't be read: it is too long"):
            await mover.bring(data, tmp_path, nothing)


@pytest.mark.parametrize("kind", ["s3", "webdav", "http"])
async def test_the_page_of_a_redirect_is_not_read_into_memory(kind: str, tmp_path: Path) -> None:
    with listing(body=bytes(1 << 24), leads_on=True) as address:
        mover, data = make(kind, address)
        if kind == "http":
            mover, data = HttpMover(UNLIMITED), Data("in", SIMPLE, f"http://{address}/a")
        with pytest.raises(DataNotThere, match="the server's answer has more than 65536 bytes"):
            await mover.bring(data, tmp_path, nothing)
