"""Data comes and goes over real OpenSSH: by SFTP and by rsync, whole, resumed, and only from hosts that are known."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.access.model.account import fingerprint
from sublet.booking.model.request import Data
from sublet.data.model.credentials import CredentialKind
from sublet.kernel.errors import DataNotThere
from sublet.movers.port import UNLIMITED, Mover, Policy, Pushes, TellsVersions
from sublet.movers.rsync import RsyncMover
from sublet.movers.sftp import SftpMover
from sublet.movers.ssh_access import SshPlace, split_ssh_address
from tests.contract.moving import quiet
from tests.contract.ssh_data import BOTH, LARGE, SHA, allow, data, host_key, list_below, mover_for, serve_data
from tests.sshd import Sshd, make_key, needs_sshd

pytestmark = [pytest.mark.anyio, needs_sshd]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with serve_data(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def show_own_processes() -> Iterator[bytes]:
    """The words and variables of all that this process has started."""
    waiting = [os.getpid()]
    while waiting:
        for children in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it has ended
                pids = [int(word) for word in children.read_text().split()]
                waiting += pids
                yield from (Path(f"/proc/{pid}/{name}").read_bytes() for pid in pids for name in ("cmdline", "environ"))


@pytest.mark.parametrize("scheme", BOTH)
async def test_a_file_is_brought_whole_and_checked_and_its_key_is_nowhere_to_be_seen(
    server: Sshd, tmp_path: Path, scheme: str
) -> None:
    told: list[tuple[int, int | None]] = []
    seen: list[bytes] = []
    secret = (server.directory / "key").read_bytes().splitlines()[1]

    def look(done: int, total: int | None) -> None:
        told.append((done, total))
        if len(told) == 1:
            seen.extend(show_own_processes())

    item = data(server, "/cube.fits", scheme, checksum=SHA)
    mover = mover_for(scheme, allow(server))
    assert isinstance(mover, Pushes)
    assert not mover.check(item)
    await mover.bring(item, tmp_path, look)
    assert (tmp_path / "cube.fits").read_bytes() == LARGE
    assert os.listdir(tmp_path) == ["cube.fits"]
    assert told[-1] == (len(LARGE), len(LARGE))
    assert any(b"ssh" in text for text in seen)
    assert not any(secret in text for text in seen)


@pytest.mark.parametrize("scheme", BOTH)
async def test_links_to_folders_are_followed_and_those_that_lead_nowhere_or_in_a_circle_are_named(
    server: Sshd, tmp_path: Path, scheme: str
) -> None:
    folder = server.home / f"linked-{scheme}"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "file").write_text("text")
    (folder / "again").symlink_to("sub/deep")
    mover = mover_for(scheme, allow(server))
    await mover.bring(data(server, f"/{folder.name}/", scheme), tmp_path / "one", quiet)
    assert (tmp_path / "one" / "again" / "file").read_text() == "text"
    assert isinstance(mover, TellsVersions)
    versions = await mover.list_versions(data(server, f"/{folder.name}/", scheme))
    assert set(versions.files) == {"sub/deep/file", "again/file"}
    (folder / "sub" / "gone").symlink_to("nothing")
    with pytest.raises(DataNotThere, match=r"sub/gone in it leads nowhere|symlink has no referent: \S*/sub/gone"):
        await mover.bring(data(server, f"/{folder.name}/", scheme), tmp_path / "two", quiet)
    (folder / "sub" / "gone").unlink()
    (folder / "sub" / "circle").symlink_to("..")
    with pytest.raises(DataNotThere, match=r"sub/circle in it leads in a circle|sub/circle/sub/circle"):
        await mover.bring(data(server, f"/{folder.name}/", scheme), tmp_path / "three", quiet)


@pytest.mark.parametrize("scheme", BOTH)
async def test_a_folder_is_brought_with_what_may_be_executed_and_a_link_is_its_file(
    server: Sshd, tmp_path: Path, scheme: str
) -> None:
    await mover_for(scheme, allow(server)).bring(data(server, "/survey/", scheme), tmp_path, quiet)
    assert list_below(tmp_path) == {"deep", "deep/a 'b'*.txt", "run.sh", "link", "empty"}
    assert os.access(tmp_path / "run.sh", os.X_OK)
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("scheme", BOTH)
@pytest.mark.parametrize(
    ("path", "fields", "why"),
    [
        ("/no/such", {}, "No such file"),
        ("/cube.fits", {"checksum": "sha256:" + "0" * 64}, "its checksum is"),
        ("/cube.fits", {"size": 7}, "7 were expected"),
        ("/survey/", {"checksum": SHA}, "it is a folder"),
    ],
)
async def test_what_is_not_there_or_not_right_is_told(
    server: Sshd, tmp_path: Path, scheme: str, path: str, fields: dict[str, str], why: str
) -> None:
    with pytest.raises(DataNotThere, match=why):
        await mover_for(scheme, allow(server)).bring(data(server, path, scheme, **fields), tmp_path, quiet)
    assert not (tmp_path / "cube.fits").exists()


@pytest.mark.parametrize("scheme", BOTH)
async def test_an_unknown_host_key_is_shown_and_never_accepted(server: Sshd, tmp_path: Path, scheme: str) -> None:
    right = fingerprint(host_key(server))
    item = data(server, "/cube.fits", scheme)
    for policy in (allow(server, host_keys=""), UNLIMITED):
        with pytest.raises(DataNotThere) as caught:
            await mover_for(scheme, policy).bring(item, tmp_path, quiet)
        assert right in caught.value.message
        assert "--host-key SHA256:…" in caught.value.message
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    for wrong, words in (
        (fingerprint(other), right),
        (" ".join(other.split()[:2]), "host key of 127.0.0.1 has changed"),
    ):
        with pytest.raises(DataNotThere, match=words.replace("+", r"\+")):
            await mover_for(scheme, allow(server, host_keys=wrong)).bring(item, tmp_path, quiet)
    await mover_for(scheme, allow(server, host_keys=right)).bring(item, tmp_path, quiet)
    assert (tmp_path / "cube.fits").exists()


@pytest.mark.parametrize("scheme", BOTH)
async def test_without_a_credential_or_with_a_wrong_one_it_is_told_what_to_do(
    server: Sshd, tmp_path: Path, scheme: str
) -> None:
    item = data(server, "/cube.fits", scheme)
    with pytest.raises(DataNotThere, match=r"sublet credential add sftp://127\.0\.0\.1"):
        await mover_for(scheme, Policy(public_only=False)).bring(item, tmp_path, quiet)
    with pytest.raises(DataNotThere, match="Permission denied") as caught:
        await mover_for(scheme, allow(server, kind=CredentialKind.LOGIN)).bring(item, tmp_path, quiet)
    assert "a password" not in caught.value.message
    known = allow(server)
    for policy, why in (
        (replace(known, public_only=True), "not a public address"),
        (replace(known, largest=1000), "more than 1000 bytes"),
    ):
        with pytest.raises(DataNotThere, match=why):
            await mover_for(scheme, policy).bring(item, tmp_path, quiet)
    assert os.listdir(tmp_path) == []


@contextlib.asynccontextmanager
async def cutting(port: int, after: int) -> AsyncIterator[tuple[int, list[int]]]:
    """A proxy whose first long connection is cut after so many bytes; its port, and what each connection brought."""
    brought: list[int] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while piece := await reader.read(1 << 15):
            brought[number] += len(piece)
            writer.write(piece)
            await writer.drain()
            if brought[number] > after and max(brought[:number], default=0) <= after:
                break

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        brought.append(0)
        upward = asyncio.create_task(_pump(reader, far_writer))
        with contextlib.suppress(OSError):
            await copy(far_reader, writer, len(brought) - 1)
        upward.cancel()
        for end in (writer, far_writer):
            end.transport.abort()

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with proxy:
        yield proxy.sockets[0].getsockname()[1], brought


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(1 << 15):
            writer.write(piece)
            await writer.drain()


@pytest.mark.parametrize("scheme", BOTH)
async def test_a_connection_that_is_cut_half_way_is_opened_again_and_goes_on(
    server: Sshd, tmp_path: Path, scheme: str
) -> None:
    async with cutting(server.port, len(LARGE) // 2) as (port, brought):
        item = data(server, "/cube.fits", scheme, port, checksum=SHA)
        await mover_for(scheme, allow(server, port=port)).bring(item, tmp_path, quiet)
    assert (tmp_path / "cube.fits").read_bytes() == LARGE
    long = [size for size in brought if size > 1_000_000]
    assert len(long) == 2
    assert sum(long) < 1.3 * len(LARGE), "what had come was not brought again"


async def test_a_later_try_goes_on_unless_the_file_has_changed(server: Sshd, tmp_path: Path) -> None:
    source, mover = server.home / "changing", SftpMover(allow(server))
    source.write_bytes(LARGE)
    item, firsts = data(server, "/changing"), list[int]()

    async def stop_half_way() -> None:
        def stop(done: int, total: int | None) -> None:
            if done > len(LARGE) // 2:
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await mover.bring(item, tmp_path, stop)

    await stop_half_way()
    await mover.bring(item, tmp_path, lambda done, total: firsts.append(done))
    assert firsts[0] > len(LARGE) // 2
    (tmp_path / "changing").unlink()
    await stop_half_way()
    source.write_bytes(LARGE[::-1])
    os.utime(source, (1, 1))
    await mover.bring(item, tmp_path, quiet)
    assert (tmp_path / "changing").read_bytes() == LARGE[::-1]


@pytest.mark.parametrize(
    "location",
    [
        "sftp:///x",
        "sftp://host",
        "sftp://me:secret@host/x",
        "sftp://-oProxyCommand=date/x",
        "sftp://-x@host/x",
        "sftp://host/a?b",
        "sftp://host/a%00b",
        "sftp://host:99999/x",
    ],
)
@pytest.mark.parametrize("mover", [SftpMover(UNLIMITED), RsyncMover(UNLIMITED)], ids=["sftp", "rsync"])
def test_what_is_no_such_address_is_a_reason(mover: Mover, location: str) -> None:
    assert mover.check(Data("cube", "simple-data-resource", location))


def test_a_path_is_absolute_or_below_the_home_directory() -> None:
    assert split_ssh_address("sftp://me@h:2222/data/a%20b") == SshPlace("h", 2222, "me", "/data/a b")
    assert split_ssh_address("sftp://h/~/data/").path == "data/"
