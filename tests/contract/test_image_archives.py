"""An image of a registry that goes to nodes from here is fetched once, for all sessions of all pools and annexes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from sublet.booking.model.request import Executable
from sublet.data.bringing import StagingContext
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.image_staging import ImageStaging
from sublet.kinds.container import DOCKER
from sublet.movers.oci import OciMover
from sublet.movers.port import Policy
from sublet.platforms.batch.kept import digest_of, name_of
from sublet.platforms.htcondor.platform import HTCondor
from sublet.platforms.port import ArchiveReader, Platform
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import open_system
from tests.real import images
from tests.registries import Registry, registry

pytestmark = pytest.mark.anyio
OCI = [OciMover(Policy(public_only=False))]


@dataclass
class LoopState:
    """What is told of sessions."""

    staging: dict[str, str] = field(default_factory=dict)


class Transfers:
    """Nobody asks how long they took."""

    async def record(self, *words: Any) -> None:
        """Forget it."""


@dataclass
class Systems:
    """The systems that the nodes of annexes are on."""

    by_platform: dict[str, list[tuple[Platform, str]]] = field(default_factory=dict)

    async def find_systems(self, platform: str) -> list[tuple[Platform, str]]:
        """Those of one annex."""
        return self.by_platform.get(platform, [])


@dataclass
class Context:
    """All that staging needs of a service here."""

    kinds: ExecutableKinds = field(default_factory=lambda: ExecutableKinds({DOCKER.name: DOCKER}, False))
    movers: Movers = field(default_factory=lambda: Movers(OCI, for_guests=OCI))
    loop_state: LoopState = field(default_factory=LoopState)
    transfers: Transfers = field(default_factory=Transfers)
    systems: Systems = field(default_factory=Systems)


@pytest.fixture
def shop() -> Iterator[Registry]:
    with registry() as server:
        yield server


async def open_platform(tmp_path: Path, name: str, **settings: str) -> HTCondor:
    platform = HTCondor(name=name, **settings)  # type: ignore[arg-type]
    await platform.open(tmp_path / "home" / "platforms" / name)
    return platform


async def stage(
    platform: HTCondor, image: str, session: str, systems: Sequence[tuple[Platform, str]] = (), *, guest: bool = False
) -> tuple[Path, dict[str, str], ImageStaging]:
    """The directory of a session that has its image, and which of its files are kept elsewhere."""
    place = await platform.place(session)
    assert place
    executable = Executable(DOCKER.name, fields={"image": {"locations": [image]}})
    context = Context(systems=Systems({platform.name: list(systems)}))
    staging = ImageStaging(cast(StagingContext, context), platform, "podman", place, session, "alice")
    return place, await staging.fetch(executable, None, guest=guest), staging


async def test_sessions_of_annexes_and_pools_fetch_an_image_once_and_each_has_it(
    tmp_path: Path, shop: Registry
) -> None:
    await asyncio.to_thread(images.oci_archive, tmp_path / "tool.tar")
    shop.push("tools/once", "1", tmp_path / "tool.tar")
    image = f"{shop.address}/tools/once:1"
    first, second = [await open_platform(tmp_path, f"annex-{n}", annex=n, person="alice") for n in ("a", "b")]
    pool = await open_platform(tmp_path, "pool")
    place, kept, staging = await stage(first, image, "one")
    [file] = (place / "shared").iterdir()
    assert file.name == name_of(digest_of(file)), "what systems keep it by"
    assert [Path(path).name for path in kept.values()] == [file.name]
    assert [str(taken.road) for taken in staging.roads] == ["here"]
    asked = shop.fetched()
    assert asked == 2, "a configuration and a layer"
    other, _, again = await stage(second, image, "two")
    assert [each.name for each in (other / "shared").iterdir()] == [file.name]
    assert again.roads == [], "nothing was moved"
    plain, nothing, _ = await stage(pool, image, "three")
    assert not nothing
    [along] = (plain / "data").rglob("*.tar")
    assert along.stat().st_ino == file.stat().st_ino, "one copy for all"
    assert shop.fetched() == asked


async def test_an_archive_that_goes_from_the_cache_stays_with_the_sessions_that_have_it(
    tmp_path: Path, shop: Registry
) -> None:
    for word in ("old", "new"):
        await asyncio.to_thread(images.oci_archive, tmp_path / f"{word}.tar", Env=[f"WORD={word}"])
    annex = await open_platform(tmp_path, "annex-a", annex="a", person="alice")
    shop.push("tools/moved", "1", tmp_path / "old.tar")
    place, _, _ = await stage(annex, f"{shop.address}/tools/moved:1", "one")
    shop.push("tools/moved", "1", tmp_path / "new.tar")
    await stage(annex, f"{shop.address}/tools/moved:1", "two")
    archives = tmp_path / "home" / "images" / "kept"
    assert len([entry for entry in archives.iterdir() if entry.is_dir()]) == 2, "a tag that was moved is another image"
    assert await annex.sweep() == [], "they were needed just now"
    for entry in archives.glob("*/used"):
        os.utime(entry, (0, 0))
    assert len(await annex.sweep()) == 2
    [file] = (place / "shared").iterdir()
    assert file.name == name_of(digest_of(file))


class MakingSystem(Slurm):
    """A cluster that notes what images are made of; what makes them needs its tools."""

    made: ClassVar[list[str]] = []

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        """Note it."""
        assert archive is None, "it is read there"
        self.made.append(kept)
        return True


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[MakingSystem]:
    platform = await open_system(tmp_path, MakingSystem)
    platform.made.clear()
    yield platform
    await platform.close()


def list_archives(home: Path) -> list[Path]:
    """What lies on this machine's disk and is as large as an image."""
    return [file for file in home.rglob("*") if file.is_file() and file.stat().st_size > 1024]


async def test_an_image_of_a_session_on_an_annex_is_streamed_past_this_disk_to_the_systems_of_its_nodes(
    tmp_path: Path, shop: Registry, cluster: MakingSystem
) -> None:
    await asyncio.to_thread(images.oci_archive, tmp_path / "tool.tar")
    digest = shop.push("tools/passing", "1", tmp_path / "tool.tar")
    image = f"{shop.address}/tools/passing:1"
    annex = await open_platform(tmp_path, "annex-a", annex="a", person="alice")
    for session in ("one", "two"):
        place, kept, staging = await stage(annex, image, session, [(cluster, "lease")])
        [(path, there)] = kept.items()
        entry = tmp_path / "far" / "kept" / Path(there).name
        assert (entry / "users" / "lease").exists(), "the lease protects it, not the session that came first"
        assert [str(taken.road) for taken in staging.roads] == (["streamed"] if session == "one" else [])
        assert (place / "image-address").read_text() == f"docker://{shop.address}/tools/passing@{digest}"
        assert Path(path).suffix == ".tar"
    assert shop.fetched() == 2, "a configuration and a layer, once"
    assert cluster.made == [str(entry / "content")] * 2
    assert not (tmp_path / "home" / "images").exists()
    assert list_archives(tmp_path / "home" / "platforms") == []


async def test_an_image_that_one_of_the_systems_can_not_have_is_kept_here_and_travels(
    tmp_path: Path, shop: Registry, cluster: MakingSystem
) -> None:
    await asyncio.to_thread(images.oci_archive, tmp_path / "tool.tar")
    shop.push("tools/partly", "1", tmp_path / "tool.tar")
    image = f"{shop.address}/tools/partly:1"
    annex = await open_platform(tmp_path, "annex-a", annex="a", person="alice")
    without = await open_platform(tmp_path, "pool")
    for session, systems, guest in (
        ("one", [(cluster, "lease"), (without, "other")], False),
        ("two", [], False),
        ("three", [(cluster, "lease")], True),
    ):
        place, kept, _ = await stage(annex, image, session, systems, guest=guest)
        [file] = (place / "shared").iterdir()
        assert [Path(path).name for path in kept.values()] == [file.name]
        assert not (place / "image-address").exists()
    place, _, _ = await stage(annex, image, "one", [(cluster, "lease")])
    assert not (place / "shared").exists(), "what an earlier try had put aside does not travel"
