"""Files that many sessions share are sent to a system once, protected while they are needed, and go when not."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.errors import PlatformRefused
from sublet.platforms.kept import digest_of
from sublet.platforms.memory import MemoryPlatform
from sublet.platforms.slurm import Slurm
from sublet.reach.local import LocalReach
from sublet.reach.port import Progress

pytestmark = pytest.mark.anyio
SIZE = 700_000  # more than travels in one piece


class Counted(LocalReach):
    """This machine, with what is sent to it counted."""

    def __init__(self) -> None:
        super().__init__("far")
        self.sent: list[str] = []
        self.before_sending: Callable[[], int] = lambda: 0

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        self.sent.append(target)
        self.before_sending()
        await super().send(source, target, progress)


def writable(path: str) -> bool:
    return bool(Path(path).stat().st_mode & 0o222)


@pytest.fixture
def reach() -> Counted:
    return Counted()


@pytest.fixture
async def slurm(tmp_path: Path, reach: Counted) -> AsyncIterator[Slurm]:
    platform = Slurm(name="far", directory=str(tmp_path / "far"))
    platform.use(reach)
    (tmp_path / "home").mkdir()
    await platform.open(tmp_path / "home")
    yield platform
    await platform.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "tool.sif"
    file.write_bytes(b"x" * SIZE)
    return file


async def test_many_who_need_a_file_at_once_have_it_sent_once(slurm: Slurm, reach: Counted, image: Path) -> None:
    steps: list[int] = []
    places = await asyncio.gather(
        *(slurm.keep(image, user=f"session-{n}", progress=lambda done, total: steps.append(done)) for n in range(5))
    )
    assert len(set(places)) == len(reach.sent) == 1
    assert digest_of(Path(places[0])) == digest_of(image)
    assert not writable(places[0])
    assert steps[-1] == SIZE
    [kept] = await slurm.kept()
    assert (kept.digest, kept.size) == (digest_of(image), SIZE)
    assert set(kept.users) == {f"session-{n}" for n in range(5)}


async def test_a_file_that_is_not_the_one_that_was_meant_is_refused_and_not_sent(
    slurm: Slurm, reach: Counted, image: Path
) -> None:
    with pytest.raises(PlatformRefused, match="is not the file that was meant"):
        await slurm.keep(image, "sha256:" + "0" * 64, "session")
    assert not reach.sent
    assert not await slurm.kept()


async def test_a_file_that_changes_while_it_is_sent_is_shared_with_nobody(
    slurm: Slurm, reach: Counted, image: Path
) -> None:
    digest = digest_of(image)
    reach.before_sending = lambda: image.write_bytes(b"y" * SIZE)
    with pytest.raises(PlatformRefused, match="changed while it was sent"):
        await slurm.keep(image, digest, "session")
    assert not await slurm.kept()
    reach.before_sending = lambda: 0
    assert digest_of(Path(await slurm.keep(image))) == digest_of(image) != digest


async def test_what_a_session_needs_stays_and_what_nobody_needs_goes(slurm: Slurm, image: Path, tmp_path: Path) -> None:
    digest = digest_of(image)
    await slurm.keep(image, digest, "session")
    assert await slurm.let_go(digest) == []
    assert await slurm.let_go() == []
    (tmp_path / "far" / "sessions").mkdir(exist_ok=True)
    (tmp_path / "far" / "incoming" / "session").rename(tmp_path / "far" / "sessions" / "session")  # it is submitted
    assert await slurm.let_go() == []
    shutil.rmtree(tmp_path / "far" / "sessions" / "session")  # it is cleaned away
    assert await slurm.let_go(idle=timedelta(hours=1)) == [], "it may be needed again soon"
    assert [kept.users for kept in await slurm.kept()] == [()]
    assert await slurm.let_go() == [digest]
    assert not (tmp_path / "far").exists(), "what is empty goes too"


async def test_one_that_was_let_go_is_sent_again(slurm: Slurm, reach: Counted, image: Path) -> None:
    await slurm.keep(image)
    assert await slurm.let_go(digest_of(image)) == [digest_of(image)]
    assert digest_of(Path(await slurm.keep(image))) == digest_of(image)
    assert len(reach.sent) == 2


async def test_on_this_machine_a_file_is_where_it_is(image: Path) -> None:
    assert await MemoryPlatform(name="here").keep(image) == str(image)
