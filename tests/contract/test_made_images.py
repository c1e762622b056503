"""Archives of images become what container tools run, once for all sessions of this machine, and go with the cache."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.kinds.images import ArchiveFile
from sublet.kinds.inside import container_images
from sublet.kinds.inside.container_images import NoImage, with_apptainer
from sublet.platforms.batch.kept import name_image
from sublet.platforms.local import made_images
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.local.images import LocalImages
from sublet.platforms.local.made_images import MadeImages, forget_stored, name_entry, name_stored
from tests.real import images

pytestmark = pytest.mark.anyio
TOOL = """#!/bin/sh
echo "$@" >>{log}
case $1 in
    --silent) [ {code} = 0 ] && echo made >"$5" ;;
    image) grep -qx "$3" {store} 2>/dev/null || exit 1 ;;
    tag) echo "$3" >>{store} ;;
    rmi) grep -vx "$2" {store} >{store}.new; mv {store}.new {store} ;;
esac
exit {code}
"""


def tool_of(tmp_path: Path, code: int = 0) -> str:
    """What stands in for a container tool: it writes down what it is asked for, and which names its store has."""
    tool = tmp_path / f"tool-{code}"
    tool.write_text(TOOL.format(log=tmp_path / "asked", store=tmp_path / "store", code=code))
    tool.chmod(0o700)
    return str(tool)


def asked(tmp_path: Path, word: str) -> list[str]:
    lines = (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []
    return [line for line in lines if word in line.split()]


def read(file: str | Path) -> str:
    return Path(file).read_text("latin-1")


@pytest.fixture
def cache(tmp_path: Path) -> LocalCache:
    (tmp_path / "home" / "sessions").mkdir(parents=True)
    for key in ("one", "two"):
        (tmp_path / "home" / "sessions" / key).mkdir()
    ended: set[str] = set()
    cache = LocalCache("here", tmp_path / "home", 0, True, ended.__contains__, forget=forget_stored)
    cache.ended = ended  # type: ignore[attr-defined]
    return cache


@pytest.fixture
def made(cache: LocalCache) -> MadeImages:
    return MadeImages(cache, LocalImages({"PATH": "/usr/bin:/bin"}))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    images.oci_archive(tmp_path / "tool.tar")
    return tmp_path / "tool.tar"


async def test_an_image_file_is_made_once_and_a_session_runs_it(
    made: MadeImages, cache: LocalCache, archive: Path, tmp_path: Path
) -> None:
    tools, reader = {"apptainer": tool_of(tmp_path)}, ArchiveFile(str(archive))
    done = await asyncio.gather(*(made.make(tools, str(archive), "apptainer", reader, key) for key in ("one", "two")))
    assert done == [True, True]
    assert len(asked(tmp_path, "pull")) == 1
    assert await made.find_made({"a": reader}) == ["a"]
    own = {"tool": "apptainer", "paths": tools, "image": str(tmp_path / "home/sessions/two/image"), "name": "two"}
    plan = own | {"digest": reader.find_id(), "private": str(tmp_path)}
    run = with_apptainer({"how": "archive", "path": str(archive)}, plan)
    assert read(run.reference) == "made\n"
    assert not run.temporary, "it is not this session's to remove"
    with pytest.raises(NoImage, match="its digest is not"):
        with_apptainer({"how": "archive", "path": str(archive)}, plan | {"digest": "sha256:" + "0" * 64})
    assert await cache.let_go([], timedelta(0)) == [], "sessions need it"
    cache.ended.update({"one", "two"})  # type: ignore[attr-defined]
    assert len(await cache.let_go([], timedelta(0))) == 1


async def test_an_image_of_a_registry_is_a_file_that_sessions_share_and_offers_know_it(
    made: MadeImages, cache: LocalCache, tmp_path: Path
) -> None:
    tools, location = {"apptainer": tool_of(tmp_path)}, f"docker://registry.example.org/tool@sha256:{'a' * 64}"
    for key in ("one", "two"):
        target = tmp_path / "home" / "sessions" / key / "data" / "sublet.image-0" / "image.sif"
        assert await made.fetch(tools, location, "apptainer", target, key)
        assert read(target) == "made\n"
    assert asked(tmp_path, location) == asked(tmp_path, "pull")
    assert len(asked(tmp_path, "pull")) == 1
    assert await cache.list_there([name_image(location)]) == [name_image(location)], "the name that offers ask for"
    failing = {"apptainer": tool_of(tmp_path, 1)}
    assert not await made.fetch(failing, location.replace("a", "b"), "apptainer", target, "one")
    assert not await made.fetch({}, location, "apptainer", target, "one")


async def test_a_store_has_an_image_as_long_as_the_cache_and_again_if_somebody_cleared_it(
    made: MadeImages, cache: LocalCache, archive: Path, tmp_path: Path
) -> None:
    tools, reader = {"podman": tool_of(tmp_path)}, ArchiveFile(str(archive))
    name = name_stored(reader.find_id())
    assert name == container_images.name_kept(reader.find_id()), "the session looks for it by the same name"
    for _ in range(2):
        assert await made.make(tools, str(archive), "podman", reader, "one")
    assert len(asked(tmp_path, "pull")) == 1
    [kept] = await cache.list_kept()
    assert (kept.label, kept.size > len(read(archive))) == ("tool.tar for podman", True)
    (tmp_path / "store").write_text("")
    assert await made.make(tools, str(archive), "podman", reader, "two")
    assert len(asked(tmp_path, "pull")) == 2
    assert (tmp_path / "store").read_text().split() == [name]
    cache.ended.update({"one", "two"})  # type: ignore[attr-defined]
    assert len(await cache.let_go([], timedelta(0))) == 1
    assert (tmp_path / "store").read_text() == ""


async def test_what_can_not_be_made_is_left_to_the_session_and_claims_nothing(
    made: MadeImages, cache: LocalCache, archive: Path, tmp_path: Path
) -> None:
    broken, other = {"podman": tool_of(tmp_path, 1), "apptainer": tool_of(tmp_path, 1)}, tmp_path / "other.tar"
    other.write_bytes(b"no archive" * 100)
    for tool in ("podman", "apptainer"):
        reader = ArchiveFile(str(archive))
        assert not await made.make(broken, str(archive), tool, reader, "one")
        assert not cache.entry(name_entry(tool, reader.find_id())).is_claimed()
    assert not await made.make(broken, str(other), "podman", ArchiveFile(str(other)), "one")
    assert not await made.make(broken, str(archive), "charliecloud", ArchiveFile(str(archive)), "one")
    assert not await made.make({}, str(archive), "podman", ArchiveFile(str(archive)), "one")
    assert await cache.list_kept() == []


async def test_an_entry_stays_while_a_session_changes_the_store(
    made: MadeImages, cache: LocalCache, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made_images.find_store_folder() == container_images.find_store_folder(), "both lock the same directory"
    (tmp_path / "locked").mkdir()
    for module in (made_images, container_images):
        monkeypatch.setattr(module, "find_store_folder", lambda: str(tmp_path / "locked"))
    monkeypatch.setattr(made_images, "WAITING", 0.0)
    tools, reader = {"podman": tool_of(tmp_path)}, ArchiveFile(str(archive))
    assert await made.make(tools, str(archive), "podman", reader, "one")
    cache.ended.add("one")  # type: ignore[attr-defined]
    with container_images.alone():
        assert await cache.let_go([], timedelta(0)) == []
    assert json.loads(cache.entry(name_entry("podman", reader.find_id())).content.read_bytes())["tool"]
    assert len(await cache.let_go([], timedelta(0))) == 1
