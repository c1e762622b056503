"""Data comes and goes over real OpenSSH: by SFTP and by rsync, whole, resumed, and only from hosts that are known."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sublet.access.model.account import fingerprint
from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.system_files import SystemFilesMover
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.kernel.errors import DataNotSent, DataNotThere, LoginNeeded
from sublet.movers.port import UNLIMITED, Mover, Policy, Pushes
from sublet.movers.rsync import RsyncMover
from sublet.movers.sftp import SftpMover
from sublet.movers.ssh_access import SshPlace, split_ssh_address
from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.registry import load_platforms
from sublet.reach.prompts import nobody
from tests.contract.moving import content, quiet
from tests.sshd import Sshd, make_key, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="there is no rsync on this machine")
LARGE = os.urandom(12_000_000)
SHA = f"sha256:{hashlib.sha256(LARGE).hexdigest()}"
BOTH = [pytest.param("sftp"), pytest.param("rsync+ssh", marks=needs_rsync)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("sshd")) as running:
        folder = running.home / "survey" / "deep"
        folder.mkdir(parents=True)
        (running.home / "cube.fits").write_bytes(LARGE)
        (folder / "a 'b'*.txt").write_text("a\n")
        (folder.parent / "run.sh").write_text("#!/bin/sh\n")
        (folder.parent / "run.sh").chmod(0o755)
        (folder.parent / "link").symlink_to("run.sh")
        (folder.parent / "empty").mkdir()
        yield running


def host_key(server: Sshd) -> str:
    return " ".join((server.directory / "host_key.pub").read_text().split()[:2])


def allow(
    server: Sshd, *, host_keys: str | None = None, port: int = 0, kind: CredentialKind = CredentialKind.KEY
) -> Policy:
    """What someone may bring who has a credential, and nothing else, of this machine."""
    secret = (server.directory / "key").read_text() if kind is CredentialKind.KEY else "a password"
    known = host_key(server) if host_keys is None else host_keys
    place = f"sftp://127.0.0.1:{port or server.port}"
    return Policy(public_only=False, credentials=[Credential(place, kind, server.user, secret, known)])


def mover_for(scheme: str, policy: Policy) -> SftpMover | RsyncMover:
    return SftpMover(policy, pause=0.01) if scheme == "sftp" else RsyncMover(policy, pause=0.01)


def data(server: Sshd, path: str, scheme: str = "sftp", port: int = 0, **fields: str) -> Data:
    return Data(
        "cube", "simple-data-resource", f"{scheme}://127.0.0.1:{port or server.port}{server.home}{path}", **fields
    )  # type: ignore[arg-type]


def show_own_processes() -> Iterator[bytes]:
    """The words and variables of all that this process has started."""
    waiting = [os.getpid()]
    while waiting:
        for children in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it has ended
                pids = [int(word) for word in children.read_text().split()]
                waiting += pids
                yield from (Path(f"/proc/{pid}/{name}").read_bytes() for pid in pids for name in ("cmdline", "environ"))


def list_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


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


@pytest.mark.parametrize("scheme", BOTH)
async def test_results_are_sent_whole_into_folders_that_are_made(server: Sshd, scheme: str) -> None:
    mover, told = mover_for(scheme, allow(server)), list[int]()
    begin = f"{scheme}://127.0.0.1:{server.port}"
    folder = f"{server.home}/sent-{mover.name}/new/"
    for body in (b"first", LARGE):
        await mover.push(content("out/big file.bin", body), f"{begin}{folder}", lambda done, total: told.append(done))
    place = server.home / f"sent-{mover.name}/new/out/big file.bin"
    assert place.read_bytes() == LARGE
    assert max(told) == len(LARGE)
    await mover.push(content("x.txt", b"x"), f"{begin}{server.home}/sent-{mover.name}/named.txt", quiet)
    assert (server.home / f"sent-{mover.name}/named.txt").read_bytes() == b"x"
    assert sorted(os.listdir(place.parent)) == ["big file.bin"]
    with pytest.raises(DataNotSent, match=r"cube\.fits"):
        await mover.push(content("x.txt", b"x"), f"{begin}{server.home}/cube.fits/below/", quiet)
    with pytest.raises(DataNotSent, match="a folder has that name; write a / at the end of the address"):
        await mover.push(content("x.txt", b"x"), f"{begin}{folder.rstrip('/')}", quiet)
    assert os.listdir(server.home / f"sent-{mover.name}/new") == ["out"]


@pytest.mark.parametrize("scheme", BOTH)
async def test_which_versions_of_files_a_server_has_is_told_so_that_others_changes_are_seen(
    server: Sshd, scheme: str
) -> None:
    mover, folder = mover_for(scheme, allow(server)), server.home / f"versions-{scheme}"
    (folder / "deep").mkdir(parents=True)
    for path in ("a b.txt", "deep/ü.txt"):
        (folder / path).write_text("1")
    whole = data(server, f"/{folder.name}/", scheme)
    before = await mover.list_versions(whole)
    assert before.is_folder
    assert {path: size for path, (size, _) in before.files.items()} == {"a b.txt": 1, "deep/ü.txt": 1}
    os.utime(folder / "a b.txt", (1, 1))
    after = await mover.list_versions(whole)
    assert [path for path in before.files if before.files[path] != after.files[path]] == ["a b.txt"]
    alone = await mover.list_versions(data(server, f"/{folder.name}/a%20b.txt", scheme))
    assert (alone.is_folder, alone.files) == (False, {"a b.txt": after.files["a b.txt"]})
    with pytest.raises(DataNotThere):
        await mover.list_versions(data(server, f"/{folder.name}/gone.txt", scheme))


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


async def _refuse_what_can_not_be_sent(mover: SystemFilesMover, home: Path) -> None:
    """Nothing that looks complete, and no part, stays of a file that could not be sent."""
    with pytest.raises(DataNotSent, match="a folder has that name; write a / at the end of the address"):
        await mover.push(content("x.txt", b"x"), f"ssh://far{home}/by-login/a", quiet)
    with pytest.raises(DataNotSent, match="Not a directory"):
        await mover.push(content("x.txt", b"x"), f"ssh://far{home}/cube.fits/below/", quiet)
    with pytest.raises(DataNotSent, match="it has 9 bytes, and 1 arrived"):
        await mover.push(replace(content("short.txt", b"x"), size=9), f"ssh://far{home}/by-login/", quiet)
    await mover.push(content("empty.txt", b""), f"ssh://far{home}/by-login/a/", quiet)
    assert {file.name: file.read_bytes() for file in (home / "by-login/a").iterdir()} == {
        "b.txt": b"b",
        "empty.txt": b"",
    }
    assert os.listdir(home / "by-login") == ["a"]
    (home / "by-login/a/empty.txt").unlink()


@contextlib.asynccontextmanager
async def sign_in(server: Sshd, run: Path) -> AsyncIterator[SystemFilesMover]:
    """Files of the system `far`, which somebody has signed in to."""
    ssh = server.options | {"BatchMode": "yes"}
    platforms, _ = load_platforms({"far": {"kind": "slurm", "host": "127.0.0.1", "port": server.port, "ssh": ssh}})
    far = platforms["far"]
    assert isinstance(far, RemotePlatform)
    far.way(run)
    assert far.login
    await far.login.open(nobody)
    try:
        yield SystemFilesMover(KnownPlatforms(None, datetime.now, timedelta(1), platforms), is_allowed=True)  # type: ignore[arg-type]
    finally:
        await far.login.close()


@pytest.mark.parametrize("scheme", [*BOTH, "ssh"])
async def test_a_result_that_is_sent_over_ssh_is_never_copied_to_the_disk_here(
    server: Sshd, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "tmp"
    parts.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(parts))
    largest = 0

    def look(*_: object) -> None:
        nonlocal largest
        sizes = [file.stat().st_size for file in parts.rglob("*") if file.is_file()]
        largest = max([largest, *sizes])

    async with contextlib.AsyncExitStack() as stack:
        if scheme == "ssh":
            mover: Pushes = await stack.enter_async_context(sign_in(server, tmp_path / "run"))
            begin = f"ssh://far{server.home}"
        else:
            mover, begin = mover_for(scheme, allow(server)), f"{scheme}://127.0.0.1:{server.port}{server.home}"
        sent = await mover.push(content("large.bin", LARGE), f"{begin}/streamed-{scheme}/", look)
    assert sent == f"{begin}/streamed-{scheme}/large.bin"
    assert (server.home / f"streamed-{scheme}/large.bin").read_bytes() == LARGE
    assert largest < len(LARGE) / 10


@needs_rsync
async def test_a_host_that_lets_nothing_in_but_rsync_gets_results_too(tmp_path: Path) -> None:
    only = tmp_path / "only-rsync"  # as rrsync does, which backup hosts have in authorized_keys
    only.write_text(
        '#!/bin/sh\ncase $SSH_ORIGINAL_COMMAND in rsync\\ *) exec sh -c "$SSH_ORIGINAL_COMMAND" ;; esac\nexit 1\n'
    )
    only.chmod(0o755)
    with sshd(tmp_path / "sshd", ForceCommand=str(only)) as strict:
        address = f"rsync+ssh://127.0.0.1:{strict.port}{strict.home}/sent/"
        assert await mover_for("rsync+ssh", allow(strict)).push(content("a b.bin", LARGE), address, quiet)
        assert (strict.home / "sent/a b.bin").read_bytes() == LARGE


async def test_files_of_a_system_come_and_go_over_the_login_that_is_open(server: Sshd, tmp_path: Path) -> None:
    ssh = server.options | {"BatchMode": "yes"}
    platforms, _ = load_platforms({"far": {"kind": "slurm", "host": "127.0.0.1", "port": server.port, "ssh": ssh}})
    far = platforms["far"]
    assert isinstance(far, RemotePlatform)
    far.way(tmp_path / "run")
    mover = SystemFilesMover(KnownPlatforms(None, datetime.now, timedelta(1), platforms), is_allowed=True)  # type: ignore[arg-type]
    file = Data("cube", "simple-data-resource", f"ssh://far{server.home}/cube.fits", checksum=SHA)
    assert not mover.check(file)
    with pytest.raises(LoginNeeded):
        await mover.bring(file, tmp_path, quiet)
    assert far.login
    await far.login.open(nobody)
    try:
        assert await mover.measure(file) == len(LARGE)
        await mover.bring(file, tmp_path, quiet)
        assert (tmp_path / "cube.fits").read_bytes() == LARGE
        await mover.bring(
            replace(file, location=f"ssh://far{server.home}/survey", checksum=""), tmp_path / "all", quiet
        )
        assert list_below(tmp_path / "all") >= {"deep/a 'b'*.txt", "run.sh"}
        await mover.push(content("a/b.txt", b"b"), f"ssh://far{server.home}/by-login/", quiet)
        assert (server.home / "by-login/a/b.txt").read_bytes() == b"b"
        await _refuse_what_can_not_be_sent(mover, server.home)
        folder = replace(file, location=f"ssh://far{server.home}/by-login/", checksum="")
        there = await mover.links(folder)
        assert [(link.path, link.size) for link in there.links] == [("a/b.txt", 1)]
        alone = await mover.links(replace(folder, location=f"{folder.location}a/b.txt"))
        [link] = alone.links
        assert (alone.is_folder, link.path, link.version) == (False, "b.txt", there.links[0].version)
        (server.home / "by-login" / "empty").mkdir()
        assert (await mover.links(replace(folder, location=f"{folder.location}empty/"))).links == []
        with pytest.raises(DataNotThere, match="No such file"):
            await mover.bring(replace(file, location="ssh://far/no/such"), tmp_path, quiet)
        with pytest.raises(DataNotThere, match="its checksum is"):
            await mover.bring(replace(file, checksum="sha256:" + "0" * 64), tmp_path, quiet)
    finally:
        await far.login.close()
    assert "sftp://other/x" in mover.check_push("ssh://other/x")
    assert mover.check_push("ssh://me@far/x")
    assert "own service alone" in replace(mover, is_allowed=False).check_push("ssh://far/x")


def test_a_path_is_absolute_or_below_the_home_directory() -> None:
    assert split_ssh_address("sftp://me@h:2222/data/a%20b") == SshPlace("h", 2222, "me", "/data/a b")
    assert split_ssh_address("sftp://h/~/data/").path == "data/"
