"""Image files are unpacked once for all sessions of this machine that run a directory, and go with the cache."""

from __future__ import annotations

import asyncio
import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.kinds.images import ArchiveFile
from sublet.kinds.inside import container_unpacked
from sublet.kinds.inside.container_images import NoImage, with_charliecloud, with_podman_or_docker
from sublet.platforms.local import unpacked_images
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.local.unpacked_images import UnpackedImages
from tests.real import images

pytestmark = pytest.mark.anyio
TOOLS = {name: name for name in ("podman", "ch-run")}


@pytest.fixture
def cache(tmp_path: Path) -> LocalCache:
    for key in ("one", "two"):
        (tmp_path / "home" / "sessions" / key).mkdir(parents=True)
    ended: set[str] = set()
    cache = LocalCache("here", tmp_path / "home", 0, True, ended.__contains__)
    cache.ended = ended  # type: ignore[attr-defined]
    return cache


@pytest.fixture
def unpacked(cache: LocalCache) -> UnpackedImages:
    return UnpackedImages(cache)


def read(directory: str) -> str:
    """A file of the unpacked image; empty if that is gone."""
    file = Path(directory, "app/doc")
    return file.read_text() if file.exists() else ""


def plan_of(tmp_path: Path, tool: str, **changes: Any) -> dict[str, Any]:
    own = {"tool": tool, "paths": {"podman": "podman"}, "image": str(tmp_path / "home/sessions/two/image")}
    return own | {"digest": "", "command": ["a"], "entrypoint": None} | changes


async def test_an_archive_is_unpacked_once_and_a_session_of_charliecloud_runs_in_that(
    unpacked: UnpackedImages, cache: LocalCache, tmp_path: Path
) -> None:
    file = tmp_path / "tool.tar"
    digest = images.oci_archive(file)
    archive = ArchiveFile(str(file))
    making = (unpacked.make(TOOLS, str(file), "charliecloud", archive, key) for key in ("one", "two"))
    assert await asyncio.gather(*making) == [True, True]
    [kept] = await cache.list_kept()
    assert kept.label == "tool.tar, unpacked"
    source = {"how": "archive", "path": str(file)}
    image = with_charliecloud(source, plan_of(tmp_path, "charliecloud", digest=digest))
    assert read(image.directory) == "made for tests\n"
    assert (image.shared, image.temporary, image.config["Cmd"]) == (True, False, ["by", "default"])
    with pytest.raises(NoImage, match="its digest is not"):
        with_charliecloud(source, plan_of(tmp_path, "charliecloud", digest="sha256:" + "0" * 64))
    target = tmp_path / "home/sessions/two/data/sublet.image-0/image.sif"
    assert await unpacked.use(digest, target, "two"), "the next session needs no archive"
    brought = with_charliecloud({"how": "archive", "folder": str(target.parent)}, plan_of(tmp_path, "charliecloud"))
    assert brought.directory == image.directory
    assert not await unpacked.use("sha256:" + "0" * 64, target, "two")
    named = {"docker://a/b:1": f"oci-sha256-{digest.partition(':')[2]}", "docker://a/c:1": ""}
    assert unpacked.list_there({"ch-run": ""}, named) == ["docker://a/b:1"]
    assert unpacked.list_there(TOOLS, named) == [], "Podman would have to fetch it"
    assert await cache.let_go([], timedelta(0)) == [], "sessions need it"
    cache.ended.update({"one", "two"})  # type: ignore[attr-defined]
    assert len(await cache.let_go([], timedelta(0))) == 1
    assert not read(image.directory)


async def test_a_singularity_image_is_unpacked_for_podman_and_an_archive_is_not(
    unpacked: UnpackedImages, tmp_path: Path
) -> None:
    if not (program := shutil.which("mksquashfs")):
        pytest.skip("squashfs-tools is not installed")
    tools = TOOLS | {"unsquashfs": str(Path(program).with_name("unsquashfs"))}
    file, archive = images.sif(tmp_path / "tool.sif"), tmp_path / "tool.tar"
    images.docker_archive(archive)
    files = {"sif": ArchiveFile(str(file)), "tar": ArchiveFile(str(archive))}
    assert not await unpacked.make(TOOLS, str(file), "podman", files["sif"], "two"), "without unsquashfs"
    assert not await unpacked.make(tools, str(archive), "podman", files["tar"], "two"), "it has a store for those"
    assert unpacked.list_made(tools, files) == []
    assert await unpacked.make(tools, str(file), "podman", files["sif"], "two")
    assert unpacked.list_made(tools, files) == ["sif"]
    assert unpacked.list_made({"apptainer": ""}, files) == ["sif"], "which runs it as it is"
    plan = plan_of(tmp_path, "podman")
    image = with_podman_or_docker({"how": "sif", "path": str(file)}, plan)
    assert (image.shared, image.temporary) == (True, False)
    assert plan["command"] == ["/bin/sh", "/.singularity.d/runscript", "a"]
    other = plan_of(tmp_path, "podman", entrypoint=["/bin/cat"])
    with_podman_or_docker({"how": "sif", "path": str(file)}, other)
    assert other["command"] == ["a"], "its run script is not what is to run"


async def test_what_is_no_image_is_left_to_the_session_and_nobody_elses_folder_is_trusted(
    unpacked: UnpackedImages, cache: LocalCache, tmp_path: Path
) -> None:
    file = tmp_path / "tool.tar"
    images.docker_archive(file)
    data = file.read_bytes()
    file.write_bytes(data.replace(b"made for tests\n", b"evil for tests\n"))
    archive = ArchiveFile(str(file))
    assert not await unpacked.make(TOOLS, str(file), "charliecloud", archive, "two")
    assert not cache.entry(unpacked_images.PREFIX + archive.find_id().partition(":")[2]).is_claimed()
    assert await cache.list_kept() == []
    assert unpacked_images.name_link(str(file)) == container_unpacked.name_link(str(file)), "both know the same link"
    (tmp_path / "unpacked").mkdir()
    about = {"digests": [], "config": {}, "singularity": False}
    (tmp_path / "unpacked" / "image.json").write_text(json.dumps(about))
    plan = plan_of(tmp_path, "charliecloud")
    assert container_unpacked.find_unpacked(str(file), plan, is_brought=False) is None
