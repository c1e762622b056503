"""Images that jobs name by their address: a registry is asked which it is, and a system pulls it or has it made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, cast

import pytest

from sublet.annexes.job_images import JobImages
from sublet.booking.model.session import Session
from sublet.data.executables import Movers
from sublet.kernel.errors import PlatformRefused
from sublet.kinds.images import ArchiveFile
from sublet.movers.oci import OciMover
from sublet.movers.port import Policy
from sublet.platforms.port import ArchiveReader, Platform
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import open_system
from tests.real import images as made_images
from tests.registries import Registry, registry

pytestmark = pytest.mark.anyio


class NoCredentials:
    """Nobody's storage needs any."""

    async def open(self, person: str) -> Sequence[object]:
        return ()


@dataclass
class Lease:
    """The session of a lease, as far as images need it."""

    id: str = "lease-session"
    person: str = "alice"


@dataclass
class Cluster:
    """A system that pulls images, or has them made of archives that are sent."""

    name: str = "cluster"
    tool: str = "/usr/bin/apptainer"
    reaches_registry: bool = True
    did: list[tuple[str, str]] = field(default_factory=list)

    async def find_image_maker(self, tool: str) -> str:
        return self.tool if tool == "apptainer" else ""

    async def pull(self, image: str, tool: str, user: str) -> str | None:
        self.did.append(("pull", image))
        return f"/kept/oci-{image.rpartition('@')[2].replace(':', '-')}/content" if self.reaches_registry else None

    async def keep(self, file: Path, digest: str = "", user: str = "") -> str:
        self.did.append(("keep", file.name))
        return "/kept/sha256-12/content"

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        assert archive
        described = await asyncio.to_thread(archive.describe)
        self.did.append(("make", described.form if described else ""))
        return described is not None


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Registry]:
    made_images.oci_archive(tmp_path / "first.tar", Env=["WORD=first"])
    made_images.oci_archive(tmp_path / "second.tar", Env=["WORD=second"])
    with registry() as server:
        server.push("tools/job", "1", tmp_path / "first.tar")
        yield server


@pytest.fixture
def job_images(tmp_path: Path) -> JobImages:
    return JobImages(tmp_path / "packing", Movers([OciMover(Policy(public_only=False))]), NoCredentials())  # type: ignore[arg-type]


async def find(images: JobImages, address: str, since: int = 0) -> str:
    """What is said once the registry was asked."""
    async with asyncio.timeout(20):
        while (digest := images.find_digest(address, "alice", since)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return digest


async def test_a_tag_that_was_moved_means_the_new_image_to_every_job_that_waits_since(
    shop: Registry, job_images: JobImages, tmp_path: Path
) -> None:
    address = f"docker://{shop.address}/tools/job:1"
    first = await find(job_images, address)
    assert first == f"oci-{await asyncio.to_thread(shop.push, 'tools/other', '1', tmp_path / 'first.tar')}"
    asked = shop.fetched("/manifests/")
    assert await find(job_images, address) == first
    assert shop.fetched("/manifests/") == asked, "it was asked just now"
    second = f"oci-{await asyncio.to_thread(shop.push, 'tools/job', '1', tmp_path / 'second.tar')}"
    now = int(time.time())
    assert await find(job_images, address, now) == second != first
    assert 0 < job_images.find_move(address) <= now + 1
    job_images.forget_all_but(())
    assert job_images.find_move(address) == 0


async def test_a_system_pulls_the_very_image_or_it_is_sent_and_made_there(
    shop: Registry, job_images: JobImages, tmp_path: Path
) -> None:
    address, session = f"docker://{shop.address}/tools/job:1", cast(Session, Lease())
    digest = await find(job_images, address)
    pulls = Cluster()
    kept = await job_images.bring(cast(Platform, pulls), address, digest, session)
    assert (kept.path, kept.digest) == (f"/kept/{digest.replace(':', '-')}/content", digest)
    [(_, pulled)] = pulls.did
    assert pulled == f"docker://{shop.address}/tools/job@{digest.removeprefix('oci-')}"
    sent = Cluster(reaches_registry=False)
    kept = await job_images.bring(cast(Platform, sent), address, digest, session)
    assert (kept.path, kept.digest) == ("/kept/sha256-12/image.sif", "sha256:12")
    assert sent.did[1:] == [("keep", "image.tar"), ("make", "oci-archive")]
    assert not list((tmp_path / "packing").iterdir()), "nothing is left here"
    with pytest.raises(PlatformRefused, match="has no Apptainer"):
        await job_images.bring(cast(Platform, Cluster(tool="")), address, digest, session)
    with pytest.raises(PlatformRefused, match="means another image now"):
        await job_images.bring(cast(Platform, Cluster()), address, "oci-sha256:34", session)


class CachingCluster(Slurm):
    """A cluster with a cache that reaches no registry, and notes what images are made of."""

    reads_archives: bool = True
    made: ClassVar[list[tuple[str, bool]]] = []

    async def find_image_maker(self, tool: str) -> str:
        """It has Apptainer."""
        return "/usr/bin/apptainer" if tool == "apptainer" else ""

    async def pull(self, image: str, tool: str, user: str) -> str | None:
        """It reaches no registry."""
        return None

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        """By a Python of its own, or as it was read here."""
        self.made.append((kept, archive is not None))
        return self.reads_archives or archive is not None


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[CachingCluster]:
    platform = await open_system(tmp_path, CachingCluster)
    platform.made.clear()
    yield platform
    await platform.close()


async def test_an_image_that_a_system_can_not_pull_is_streamed_to_its_cache_past_this_disk(
    shop: Registry, job_images: JobImages, tmp_path: Path, cluster: CachingCluster
) -> None:
    address, session = f"docker://{shop.address}/tools/job:1", cast(Session, Lease())
    digest = await find(job_images, address)
    kept = await job_images.bring(cluster, address, digest, session)
    place = Path(kept.path).parent
    assert (kept.path, cluster.made) == (f"{place}/image.sif", [(f"{place}/content", False)])
    assert [(each.digest, each.users) for each in await cluster.list_kept()] == [(kept.digest, ("lease-session",))]
    assert not (tmp_path / "packing").exists(), "nothing lay here"
    before = shop.fetched()
    pinned = f"docker://{shop.address}/tools/job@{digest.removeprefix('oci-')}"
    streamed = await job_images.stream(cluster, pinned, "", session)
    assert (streamed.path, streamed.digest) == (f"{place}/content", kept.digest)
    assert shop.fetched() == before, "sessions and jobs share it"


async def test_an_image_is_put_together_here_where_no_python_of_the_system_reads_archives(
    shop: Registry, job_images: JobImages, cluster: CachingCluster
) -> None:
    cluster.reads_archives = False
    address, session = f"docker://{shop.address}/tools/job:1", cast(Session, Lease())
    kept = await job_images.bring(cluster, address, await find(job_images, address), session)
    assert [was_read_here for _, was_read_here in cluster.made] == [False, True]
    assert kept.digest.startswith("sha256:")


async def test_a_system_without_a_cache_is_refused_what_a_session_names(shop: Registry, job_images: JobImages) -> None:
    with pytest.raises(PlatformRefused, match="can't be streamed"):
        await job_images.stream(
            cast(Platform, Cluster()), f"docker://{shop.address}/tools/job:1", "", cast(Session, Lease())
        )


async def test_an_image_for_which_nobody_can_be_asked_is_left_to_the_node(job_images: JobImages) -> None:
    address = "docker://127.0.0.1:9/none:1"
    assert await find(job_images, address) == ""
    assert job_images.find_why(address)


@dataclass
class DirectoryCluster(Cluster):
    """A system without Apptainer, whose other container tool runs directories."""

    tool: str = ""
    program: str = "podman"

    async def survey(self) -> object:
        return type("Survey", (), {"tools": {self.program: f"/usr/bin/{self.program}"}})()


async def test_an_archive_of_a_session_is_unpacked_where_a_tool_runs_directories(
    job_images: JobImages, tmp_path: Path
) -> None:
    made_images.oci_archive(tmp_path / "tool.tar")
    for program, did in (("podman", [("make", "oci-archive")]), ("ch-run", [("make", "oci-archive")]), ("docker", [])):
        cluster = DirectoryCluster(program=program)
        made = await job_images.make(
            cast(Platform, cluster), "/kept/x/content", ArchiveFile(str(tmp_path / "tool.tar")), "one"
        )
        assert (made, cluster.did) == (bool(did), did)
