"""Small files in the request itself: read, kept as an address, written, and shown without their content."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.documents.request import read_request
from sublet.booking.model.request import Data, Request
from sublet.kernel.data_urls import MOST, MOST_URL, read_data_url, write_data_url
from sublet.kernel.document import parse_document
from sublet.kernel.errors import BadRequest, DataNotThere
from sublet.kernel.value_names import last_name
from sublet.movers.inline import InlineMover
from sublet.movers.port import UNLIMITED

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def read(text: str) -> Request:
    return read_request(parse_document(text.encode()), NOW)


def quiet(done: int, total: int | None) -> None:
    """Tell nobody."""


@given(st.text(min_size=1, max_size=40), st.binary(max_size=300) | st.text(max_size=300).map(lambda t: t.encode()))
def test_any_content_and_name_come_back_as_they_were(name: str, content: bytes) -> None:
    url = write_data_url(name, content)
    assert len(url) < MOST_URL
    assert url.isascii()
    held = read_data_url(url)
    assert (held.name, held.content) == (name, content)


async def test_content_in_a_request_is_a_file_at_its_path_that_the_session_may_change(tmp_path: Path) -> None:
    binary = base64.b64encode(bytes(range(256))).decode()
    request = read(
        "run: cat conf/a.toml\n"
        "data:\n"
        "- path: conf/a.toml\n"
        "  content: |\n"
        "    x = 'é'  # a comment, 100 %\n"
        f"- {{path: b.bin, content_base64: {binary}}}\n"
        "- {name: params, content: ''}\n"
    )
    seen = {volume.resource: (volume.path, volume.read_only) for volume in request.compute.volumes}
    assert seen == {"a": ("conf/a.toml", False), "b": ("b.bin", False), "params": ("data/params", False)}
    for item in request.data:
        assert not InlineMover(UNLIMITED).check(item)
        await InlineMover(UNLIMITED).bring(item, tmp_path / item.name, quiet)
    assert (tmp_path / "a/a.toml").read_text() == "x = 'é'  # a comment, 100 %\n"
    assert (tmp_path / "b/b.bin").read_bytes() == bytes(range(256))
    assert (tmp_path / "params/params").read_bytes() == b""


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("{content: x}", "path"),
        ("{content: x, content_base64: eA==, path: a}", "content and content_base64"),
        ("{content: x, location: a, path: a}", "location and content"),
        ("{content: 5, path: a}", "not text"),
        ("{content_base64: '!!', path: a}", "base64"),
        (f"{{content: {'x' * (MOST + 1)}, path: a}}", "sublet upload"),
        ("{content: x, path: ../a}", "path"),
    ],
)
def test_what_can_be_no_file_is_refused_with_what_to_do(item: str, why: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(f"run: x\ndata: [{item}]")
    assert why in caught.value.message + caught.value.advice


@pytest.mark.parametrize(
    ("location", "name", "content"),
    [
        ("data:,hello%20you", "data", b"hello you"),
        ("data:text/plain;base64,aGVsbG8=", "data", b"hello"),
        ("DATA:text/csv;charset=utf-8;name=a%2Fb.csv,1,2", "a_b.csv", b"1,2"),
        ("data:;name=..%2f..%2fetc%2fpasswd,x", "_.._etc_passwd", b"x"),
        ("data:;name=a%0ab,x", "a_b", b"x"),
    ],
)
async def test_an_address_that_others_made_is_written_under_a_safe_name(
    tmp_path: Path, location: str, name: str, content: bytes
) -> None:
    await InlineMover(UNLIMITED).bring(Data("x", "simple-data-resource", location), tmp_path, quiet)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == content
    assert "/" not in last_name(location)


@pytest.mark.parametrize(
    ("location", "fields", "why"),
    [
        ("data:text/plain", {}, "no comma"),
        ("data:;base64,!!", {}, "base64"),
        (f"data:,{'x' * (MOST + 1)}", {}, "at most 65536"),
        ("data:,hello", {"checksum": "sha256:" + "0" * 64}, "its checksum is"),
        ("data:,hello", {"size": 7}, "7 were expected"),
    ],
)
async def test_what_is_wrong_is_told_without_all_of_the_content(
    tmp_path: Path, location: str, fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(DataNotThere, match=why) as caught:
        await InlineMover(UNLIMITED).bring(Data("x", "simple-data-resource", location, **fields), tmp_path, quiet)
    assert len(caught.value.message) < 400
    assert os.listdir(tmp_path) == []
