"""What git-lfs itself pushed is brought whole: its large files, by a server's batch API or from a folder."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.kernel.errors import DataNotThere
from sublet.movers.git import GitMover
from sublet.movers.http import HttpMover
from sublet.movers.lfs import LargeFile, LargeFiles, find_server, read_pointer
from sublet.movers.lfs import LfsServer as LfsAddress
from sublet.movers.port import UNLIMITED, Policy
from tests.git_server import Repository
from tests.lfs_server import LfsClient, LfsServer, lfs_server

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("git-lfs") is None, reason="there is no git-lfs on this machine"),
]
LARGE = bytes(range(256)) * 8000  # 2 MB
OTHER = b"other" * 1000
DIGEST = hashlib.sha256(LARGE).hexdigest()
LOOK_ALIKE = f"version https://git-lfs.github.com/spec/v1\noid sha256:{DIGEST}\nsize {len(LARGE)}\n".encode()
FILES = {
    "README": b"hello\n",
    "data/cube.bin": LARGE,
    "data/same.bin": LARGE,
    "other.bin": OTHER,
    "docs/pointer.txt": LOOK_ALIKE,
}


@dataclass
class Pushed:
    """A repository that git-lfs pushed to a server."""

    server: LfsServer
    repository: Repository
    client: LfsClient


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushed]:
    root = tmp_path_factory.mktemp("lfs")
    with lfs_server(root / "served") as server:
        repository, client = server.new_repository("owner/cubes"), LfsClient(root / "clone")
        client.push(repository.url, FILES)
        yield Pushed(server, repository, client)


@pytest.fixture
def pushed(shared: Pushed) -> Iterator[Pushed]:
    shared.server.downloads.clear()
    yield shared
    shared.server.login = shared.server.elsewhere = ""
    shared.server.cut.clear()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "code"


def data(location: str, **fields: object) -> Data:
    return Data("code", "simple-data-resource", f"git+{location}", fields=fields)


def seen(folder: Path) -> dict[str, bytes]:
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    files.pop(".gitattributes", None)
    return files


def quiet(done: int, total: int | None) -> None:
    """Tell nobody."""


async def test_what_git_lfs_pushed_and_pulls_is_brought_the_same(pushed: Pushed, target: Path, tmp_path: Path) -> None:
    stock = LfsClient(tmp_path / "stock")
    stock.git("remote", "add", "origin", pushed.repository.url)
    stock.git("pull", "--quiet", "origin", "main")
    assert (stock.folder / "data/cube.bin").read_bytes() == LARGE, "git-lfs and the server agree"
    pushed.server.downloads.clear()
    told: list[tuple[int, int | None]] = []
    await GitMover(UNLIMITED).bring(data(pushed.repository.url), target, lambda done, total: told.append((done, total)))
    assert seen(target) == FILES
    asked = [digest for digest, _ in pushed.server.downloads]
    assert sorted(asked) == sorted({DIGEST, hashlib.sha256(OTHER).hexdigest()}), "each once, however often it is there"
    assert [path.name for path in target.parent.iterdir()] == ["code"]
    assert max(done for done, _ in told) >= len(LARGE) + len(OTHER)


async def test_of_a_folder_only_its_large_files_are_asked_for(pushed: Pushed, target: Path) -> None:
    await GitMover(UNLIMITED).bring(data(f"{pushed.repository.url}#data"), target, quiet)
    assert seen(target) == {"cube.bin": LARGE, "same.bin": LARGE}
    assert {digest for digest, _ in pushed.server.downloads} == {DIGEST}


async def test_what_is_to_stay_behind_is_not_downloaded(pushed: Pushed, target: Path) -> None:
    await GitMover(UNLIMITED).bring(data(pushed.repository.url, ignore=["data/", "docs"]), target, quiet)
    assert seen(target) == {"README": b"hello\n", "other.bin": OTHER}
    assert len(pushed.server.downloads) == 1


async def test_a_server_is_shown_the_persons_credential_and_nobody_else_is(
    pushed: Pushed, target: Path, tmp_path: Path
) -> None:
    pushed.server.login = "marie:radium"
    with pytest.raises(DataNotThere, match="refused: 401 Credentials needed"):
        await GitMover(UNLIMITED).bring(data(pushed.repository.url), target, quiet)
    known = Credential(pushed.repository.url, CredentialKind.LOGIN, "marie", "radium")
    with lfs_server(tmp_path / "elsewhere") as other:
        shutil.copytree(pushed.server.store, other.store)
        pushed.server.elsewhere = other.url
        await GitMover(replace(UNLIMITED, credentials=[known])).bring(data(pushed.repository.url), target, quiet)
        assert {headers["Authorization"] for _, headers in other.downloads} == {"Bearer one-download"}
    assert seen(target) == FILES


async def test_a_download_that_breaks_off_goes_on_where_it_stopped(pushed: Pushed, target: Path) -> None:
    pushed.server.cut[DIGEST] = len(LARGE) // 2
    await GitMover(UNLIMITED).bring(data(f"{pushed.repository.url}#data"), target, quiet)
    assert [headers.get("Range") for _, headers in pushed.server.downloads] == [None, f"bytes={len(LARGE) // 2}-"]
    assert seen(target) == {"cube.bin": LARGE, "same.bin": LARGE}


async def test_a_later_try_downloads_only_what_is_missing(pushed: Pushed, target: Path) -> None:
    other = pushed.server.store / hashlib.sha256(OTHER).hexdigest()
    kept = other.read_bytes()
    other.write_bytes(b"damaged" + kept[7:])
    with pytest.raises(DataNotThere, match=r"other\.bin is in Git LFS, and could not be brought: its checksum is"):
        await GitMover(UNLIMITED).bring(data(pushed.repository.url), target, quiet)
    assert seen(target) == {}
    other.write_bytes(kept)
    pushed.server.downloads.clear()
    await GitMover(UNLIMITED).bring(data(pushed.repository.url), target, quiet)
    assert {digest for digest, _ in pushed.server.downloads} <= {DIGEST, other.name}
    assert seen(target) == FILES
    assert [path.name for path in target.parent.iterdir()] == ["code"]


async def test_a_large_file_that_the_server_lost_is_named_in_its_words(pushed: Pushed, target: Path) -> None:
    other = pushed.server.store / hashlib.sha256(OTHER).hexdigest()
    kept = other.read_bytes()
    other.unlink()
    with pytest.raises(DataNotThere, match=r"other\.bin is in Git LFS, whose server answered 404 Object does not"):
        await GitMover(UNLIMITED).bring(data(pushed.repository.url), target, quiet)
    other.write_bytes(kept)


async def test_large_files_count_for_the_limit_before_any_of_them_comes(pushed: Pushed, target: Path) -> None:
    with pytest.raises(DataNotThere, match="more than 1000000 bytes"):
        await GitMover(replace(UNLIMITED, largest=1_000_000)).bring(data(pushed.repository.url), target, quiet)
    assert not pushed.server.downloads


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://127.0.0.1:1/x", "refused"),
        ("ssh://git@example.org/x", "which only git-lfs can speak to"),
        ("file:///srv/x", "not among the files of /srv/x"),
    ],
)
async def test_a_repository_may_name_another_server_and_what_can_not_be_asked_is_told(
    pushed: Pushed, target: Path, address: str, why: str
) -> None:
    pushed.repository.commit(
        {".gitattributes": "*.bin filter=lfs\n", "a.bin": LOOK_ALIKE, ".lfsconfig": f"[lfs]\n\turl = {address}\n"},
        branch="elsewhere",
    )
    with pytest.raises(DataNotThere, match=why):
        await GitMover(UNLIMITED).bring(data(f"{pushed.repository.url}@elsewhere"), target, quiet)
    assert seen(target) == {}


async def test_a_repository_on_this_machine_is_brought_with_its_large_files(target: Path, tmp_path: Path) -> None:
    repository = tmp_path / "there.git"
    Repository(repository, address := f"file://{repository}")
    LfsClient(tmp_path / "clone").push(address, FILES)
    await GitMover(UNLIMITED).bring(data(f"{address}@main"), target, quiet)
    assert seen(target) == FILES
    (reason,) = GitMover(Policy(file_roots=[tmp_path])).check(data(address))
    assert "Only its owner's sessions" in reason.message


async def test_a_stranger_reaches_no_private_address_by_way_of_git_lfs(pushed: Pushed, tmp_path: Path) -> None:
    address = f"{pushed.repository.url}.git/info/lfs"
    files = LargeFiles(HttpMover(Policy()), data(pushed.repository.url), LfsAddress(address), tmp_path / "store")
    with pytest.raises(DataNotThere, match="not a public address"):
        await files.bring([LargeFile("cube.bin", DIGEST, len(LARGE))], tmp_path, quiet)
    assert not pushed.server.downloads


def test_a_pointer_is_read_exactly() -> None:
    pointer = read_pointer("a", LOOK_ALIKE)
    assert pointer
    assert (pointer.digest, pointer.size) == (DIGEST, len(LARGE))
    assert read_pointer("a", LOOK_ALIKE + b"more\n") is None
    assert read_pointer("a", b"\xff" + LOOK_ALIKE) is None


@pytest.mark.parametrize("repository", ["https://h.org/o/r", "https://h.org/o/r.git", "https://h.org/o/r/"])
def test_the_server_belongs_to_the_repository_and_takes_its_credential(repository: str) -> None:
    known = Credential("https://h.org/o/r", CredentialKind.TOKEN, secret="s")
    server = find_server(repository, "", [known])
    assert server.address == "https://h.org/o/r.git/info/lfs"
    assert find_server(repository, "https://lfs.org/x/", [known]).credential is None
