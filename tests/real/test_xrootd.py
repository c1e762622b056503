"""Data comes from and goes to a real XRootD server, by XRootD's own client and over HTTP."""

from __future__ import annotations

import hashlib
import os
import socket
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.kernel.errors import DataNotSent, DataNotThere
from sublet.kernel.part_names import name_part
from sublet.movers import xrootd_commands
from sublet.movers.digests import ask_digest
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Content, Interrupted, Policy, SourceChanged
from sublet.movers.webdav import WebDavMover
from sublet.movers.xrootd import XrootdMover
from sublet.movers.xrootd_commands import XrootdFailed, XrootdServer
from tests.xrootd_servers import XrootdTestServer, serve_xrootd

pytestmark = pytest.mark.anyio
BODY = os.urandom(3_000_000)
ADLER = f"adler32:{zlib.adler32(BODY):08x}"
TREE = {"a.csv": b"1,2\n", "deep/er/b c+ü%41.bin": BODY, "deep/empty": b""}
MOVER = XrootdMover(UNLIMITED)


@pytest.fixture(scope="module")
def server() -> Iterator[XrootdTestServer]:
    with serve_xrootd() as running:
        for path, content in TREE.items():
            running.put(f"tree/{path}", content)
        secret = running.put("locked/secret.dat", b"secret")
        secret.parent.chmod(0)
        yield running
        secret.parent.chmod(0o700)


def at(server: XrootdTestServer, path: str, **fields: object) -> Data:
    return replace(Data("cube", SIMPLE, f"root://{server.address}//{path}"), **fields)  # type: ignore[arg-type]


def quiet(done: int, total: int | None) -> None:
    """Tell nobody."""


def seen(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def holding(content: bytes, path: str) -> Content:
    async def read(first: int) -> AsyncIterator[bytes]:
        for start in range(first, len(content), 1 << 16):
            yield content[start : start + (1 << 16)]

    return Content(path, len(content), read)


async def test_a_file_is_measured_and_brought_with_the_askers_checksum(
    server: XrootdTestServer, tmp_path: Path
) -> None:
    data = at(server, "tree/deep/er/b c+ü%41.bin", checksum=f"sha256:{hashlib.sha256(BODY).hexdigest()}")
    assert MOVER.check(data) == []
    assert await MOVER.measure(data) == len(BODY)
    sizes: list[tuple[int, int | None]] = []
    await MOVER.bring(data, tmp_path, lambda done, total: sizes.append((done, total)))
    assert seen(tmp_path) == {"b c+ü%41.bin": BODY}
    assert sizes[-1] == (len(BODY), len(BODY))
    with pytest.raises(DataNotThere, match="its checksum is sha256:"):
        await MOVER.bring(replace(data, checksum="sha256:" + "0" * 64), tmp_path / "other", quiet)
    assert seen(tmp_path / "other") == {}


async def test_a_folder_is_brought_with_all_that_is_in_it(server: XrootdTestServer, tmp_path: Path) -> None:
    await MOVER.bring(at(server, "tree/"), tmp_path, quiet)
    assert seen(tmp_path) == TREE
    await MOVER.bring(at(server, "tree"), tmp_path, quiet)  # what is there is not brought again
    assert seen(tmp_path) == TREE


async def test_files_are_read_as_links_from_any_byte_on_with_the_servers_checksums(server: XrootdTestServer) -> None:
    files = await MOVER.links(at(server, "tree/"))
    links = {link.path: link for link in files.links}
    assert (files.is_folder, sorted(links)) == (True, sorted(TREE))
    for path, content in TREE.items():
        assert (links[path].size, bool(links[path].identity)) == (len(content), True)
        assert b"".join([piece async for piece in MOVER.read(at(server, "tree/"), links[path], 0)]) == content
    alone = at(server, "tree/deep/er/b c+ü%41.bin")
    [link] = (await MOVER.links(alone)).links
    assert link.checksum == ADLER
    assert b"".join([piece async for piece in MOVER.read(alone, link, 1_234_567)]) == BODY[1_234_567:]
    with pytest.raises(SourceChanged):
        [piece async for piece in MOVER.read(alone, replace(link, version="another"), 0)]
    with pytest.raises(DataNotThere, match=r"no such file or directory\n"):
        await MOVER.links(at(server, "tree/gone"))
    with pytest.raises(Interrupted):
        [piece async for piece in MOVER.read(at(server, "tree/gone"), replace(link, url="x", path=""), 0)]


async def test_which_versions_of_files_it_has_is_told_so_that_others_changes_are_seen(server: XrootdTestServer) -> None:
    before = await MOVER.list_versions(at(server, "tree/"))
    assert before.is_folder
    assert {path: size for path, (size, _) in before.files.items()} == {path: len(TREE[path]) for path in TREE}
    file = server.put("versions/a.txt", b"1")
    first = await MOVER.list_versions(at(server, "versions/a.txt"))
    os.utime(file, (1, 1))
    second = await MOVER.list_versions(at(server, "versions/a.txt"))
    assert (first.is_folder, list(first.files), first.files != second.files) == (False, ["a.txt"], True)
    with pytest.raises(DataNotThere):
        await MOVER.list_versions(at(server, "versions/gone.txt"))


@pytest.mark.parametrize(
    ("path", "words"),
    [("nothing.dat", "no such file"), ("locked/secret.dat", "permission denied"), ("locked/", "permission denied")],
)
async def test_what_is_gone_or_locked_is_told_in_the_servers_words(
    server: XrootdTestServer, tmp_path: Path, path: str, words: str
) -> None:
    with pytest.raises(DataNotThere, match=words):
        await MOVER.bring(at(server, path), tmp_path, quiet)
    assert seen(tmp_path) == {}
    assert await MOVER.measure(at(server, "nothing.dat")) is None


async def test_a_copy_goes_on_where_it_broke_off_and_the_servers_checksum_finds_a_wrong_part(
    server: XrootdTestServer, tmp_path: Path
) -> None:
    file = server.put("cut.bin", BODY)
    data = at(server, "cut.bin")
    stat = await XrootdServer(f"root://{server.address}", MOVER.environment(data.location)).stat("/cut.bin")
    part = tmp_path / name_part(f".{hashlib.sha256(b'/cut.bin').hexdigest()[:16]}")
    part.with_name(f"{part.name}.version").write_text(stat.version)
    part.write_bytes(BODY[:1_000_000])
    sizes: list[int] = []
    await MOVER.bring(data, tmp_path, lambda done, total: sizes.append(done))
    assert min(sizes) >= 1_000_000
    assert seen(tmp_path) == {"cut.bin": BODY}
    (tmp_path / "cut.bin").unlink()
    part.write_bytes(b"\0" * 1_000_000)  # of the same version, it seems
    part.with_name(f"{part.name}.version").write_text(stat.version)
    with pytest.raises(DataNotThere, match=ADLER):
        await MOVER.bring(data, tmp_path, quiet)
    await MOVER.bring(data, tmp_path, quiet)  # anew
    assert seen(tmp_path) == {"cut.bin": BODY}
    assert file.read_bytes() == BODY


async def test_a_part_of_another_version_is_not_gone_on_with(server: XrootdTestServer, tmp_path: Path) -> None:
    server.put("new.bin", BODY)
    part = tmp_path / name_part(f".{hashlib.sha256(b'/new.bin').hexdigest()[:16]}")
    part.write_bytes(b"old" * 1000)
    part.with_name(f"{part.name}.version").write_text("of last year")
    await MOVER.bring(at(server, "new.bin"), tmp_path, quiet)
    assert seen(tmp_path) == {"new.bin": BODY}


async def test_a_file_that_is_shorter_than_promised_is_refused(server: XrootdTestServer, tmp_path: Path) -> None:
    with pytest.raises(DataNotThere, match=f"{len(BODY)} bytes, and {len(BODY) + 1} were expected"):
        await MOVER.bring(at(server, "tree/deep/er/b c+ü%41.bin", size=len(BODY) + 1), tmp_path, quiet)
    assert seen(tmp_path) == {}


async def test_a_file_is_sent_into_folders_that_are_made_and_sent_again_without_harm(server: XrootdTestServer) -> None:
    room = f"root://{server.address}//runs/7/"
    for content in (b"first", BODY):
        address = await MOVER.push(holding(content, "out/pic ü.png"), room, quiet)
    assert seen(server.directory / "runs") == {"7/out/pic ü.png": BODY}
    assert address == f"{room}out/pic ü.png"
    one = f"root://{server.address}//one.bin"
    assert await MOVER.push(holding(BODY, "x/y.bin"), one, quiet) == one
    assert (server.directory / "one.bin").read_bytes() == BODY
    with pytest.raises(DataNotSent, match="a folder has that name"):
        await MOVER.push(holding(BODY, "x"), f"root://{server.address}//runs/7", quiet)


async def test_what_shrinks_or_may_not_be_written_is_not_sent_and_what_was_there_stays(
    server: XrootdTestServer,
) -> None:
    server.put("kept/s.dat", b"older")
    promised = replace(holding(BODY[:500_000], "s.dat"), size=len(BODY))
    with pytest.raises(DataNotSent, match="changed as it was read"):
        await MOVER.push(promised, f"root://{server.address}//kept/s.dat", quiet)
    assert seen(server.directory / "kept") == {"s.dat": b"older"}
    with pytest.raises(DataNotSent, match="permission denied"):
        await MOVER.push(holding(b"x", "s.dat"), f"root://{server.address}//locked/s.dat", quiet)


@contextmanager
def listening(*, answers: bool) -> Iterator[str]:
    """A port behind which nobody is, or one who never says anything."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        if answers:
            opened.listen()
        yield f"127.0.0.1:{opened.getsockname()[1]}"


@pytest.mark.parametrize(("answers", "words"), [(False, "can't be reached"), (True, "did not answer in time")])
async def test_a_dead_or_silent_server_is_given_up_in_time(
    answers: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XRD_CONNECTIONWINDOW", "XRD_STREAMTIMEOUT", "XRD_REQUESTTIMEOUT"):
        monkeypatch.setitem(xrootd_commands.LIMITS, name, "1")
    with listening(answers=answers) as address:
        data = Data("x", SIMPLE, f"root://{address}//x.dat")
        with pytest.raises(DataNotThere, match=words):
            await MOVER.bring(data, tmp_path, quiet)


async def test_the_policy_limits_size_and_addresses_and_no_redirection_is_followed_for_others(
    server: XrootdTestServer, tmp_path: Path
) -> None:
    small = XrootdMover(replace(UNLIMITED, largest=1_000_000))
    for path in ("tree/deep/er/b c+ü%41.bin", "tree/"):
        with pytest.raises(DataNotThere, match="more than 1000000 bytes"):
            await small.bring(at(server, path), tmp_path, quiet)
    strict = XrootdMover(Policy())
    with pytest.raises(DataNotThere, match=r"127\.0\.0\.1 is not a public address"):
        await strict.bring(at(server, "tree/a.csv"), tmp_path, quiet)
    assert "https: or davs:" in strict.check(Data("x", SIMPLE, "roots://data.example.org//x"))[0].message
    assert seen(tmp_path) == {}
    with serve_xrootd(f"xrootd.redirect {server.address} /tree") as leading:
        for name in ("a.csv", "b.csv"):
            (tmp_path / name).touch()
        follows = XrootdServer(f"root://{leading.address}", MOVER.environment(""))
        assert [size async for size in follows.fetch("/tree/a.csv", tmp_path / "a.csv")][-1] == 4
        stays = XrootdServer(f"root://{leading.address}", strict.environment(""))
        with pytest.raises(XrootdFailed, match="Redirect limit"):
            async for _ in stays.fetch("/tree/a.csv", tmp_path / "b.csv"):
                pass
    assert seen(tmp_path) == {"a.csv": TREE["a.csv"], "b.csv": b""}


def test_a_token_is_in_the_environment_alone_and_never_the_services_own_for_others() -> None:
    own = Credential("roots://data.example.org//team", CredentialKind.TOKEN, secret="t0ken")
    mover = XrootdMover(replace(UNLIMITED, credentials=[own]))
    assert mover.environment("roots://data.example.org//team/x")["BEARER_TOKEN"] == "t0ken"
    assert "BEARER_TOKEN" not in mover.environment("roots://data.example.org//other/x")
    assert "BEARER_TOKEN" not in mover.environment("root://data.example.org//team/x")  # it would be seen on the way
    assert XrootdMover(Policy()).environment("root://data.example.org//x")["XrdSecPROTOCOL"] == "unix,host"
    for address in ("root://data.example.org//x?authz=Bearer%20t0ken", "root://me:pass@data.example.org//x"):
        assert "sublet credential" in MOVER.check(Data("x", SIMPLE, address))[0].message


def test_without_the_client_the_answer_says_what_to_install(tmp_path: Path) -> None:
    reason = XrootdMover(UNLIMITED, search_path=str(tmp_path)).check(Data("x", SIMPLE, "root://example.org//x"))[0]
    assert "not installed" in reason.message
    assert "xrootd-client" in reason.nearest


async def test_over_http_its_checksum_is_asked_for_and_checked(server: XrootdTestServer, tmp_path: Path) -> None:
    server.put("web/a.csv", b"1,2\n")
    server.put("web/deep/b c.bin", BODY)
    async with httpx2.AsyncClient() as client:
        assert await ask_digest(client, f"http://{server.web}/web/deep/b%20c.bin") == ADLER
        assert await ask_digest(client, f"http://{server.web}/web/nothing") == ""
    data = Data("a", SIMPLE, f"http://{server.web}/web/deep/b%20c.bin")
    await HttpMover(UNLIMITED).bring(data, tmp_path, quiet)
    assert seen(tmp_path) == {"b c.bin": BODY}
    await WebDavMover(UNLIMITED).bring(Data("b", SIMPLE, f"dav://{server.web}/web/"), tmp_path / "dav", quiet)
    assert seen(tmp_path / "dav") == {"a.csv": b"1,2\n", "deep/b c.bin": BODY}
