"""A machine and the ways to it, as fixtures for the tests of what every reach promises."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from sublet.reach.local import LocalReach
from sublet.reach.login import Login
from sublet.reach.port import Reach
from sublet.reach.prompts import nobody
from tests.sshd import SSHD, Sshd, sshd

Opening = Callable[[], contextlib.AbstractAsyncContextManager[Reach]]


class Far:
    """A machine, its home directory, and ways to it."""

    def __init__(self, home: Path, opening: Opening) -> None:
        self.home, self.opening = home, opening


@pytest.fixture(scope="module")
def far_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if SSHD is None:
        pytest.skip("sshd is not on this machine")
    with sshd(tmp_path_factory.mktemp("sshd")) as started:
        (started.home / ".bashrc").write_text("echo Welcome; printf wait; echo quota >&2; cd /; export CDPATH=/tmp\n")
        yield started


@pytest.fixture(scope="module")
def far_login(far_server: Sshd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Login]]:
    control = tmp_path_factory.mktemp("c")

    def make() -> Login:
        return Login("127.0.0.1", control=control, platform="far", port=far_server.port, options=far_server.options)

    asyncio.run(make().open(nobody))
    yield make
    asyncio.run(make().close())


@contextlib.asynccontextmanager
async def as_it_is(reach: Reach) -> AsyncIterator[Reach]:
    yield reach
    await reach.close()


@pytest.fixture(params=["local", "ssh", "visit"])
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Far]:
    if request.param == "local":
        home = tmp_path / "home"
        home.mkdir()
        yield Far(home, lambda: as_it_is(LocalReach(home=home)))
        return
    server: Sshd = request.getfixturevalue("far_server")
    login: Callable[[], Login] = request.getfixturevalue("far_login")
    ways: dict[str, Opening] = {"ssh": lambda: as_it_is(login().reach), "visit": lambda: login().once(nobody)}
    yield Far(server.home, ways[request.param])
    for path in server.home.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != ".bashrc":
            path.unlink()


@pytest.fixture
async def reach(far: Far) -> AsyncIterator[Reach]:
    async with far.opening() as opened:
        yield opened


class Steps:
    """What a progress callback was told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int | None]] = []

    def __call__(self, done: int, total: int | None) -> None:
        self.told.append((done, total))


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file()
    }
