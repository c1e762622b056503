"""Images that Charliecloud or Podman runs as a directory are unpacked before a session's time, once for all."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.service import Service
from tests.contract.services import ME, ask, over, serving
from tests.real import images
from tests.real.container_tools import find_tools
from tests.registries import Registry, registry

pytestmark = pytest.mark.anyio
LOCAL = {"kind": "local", "inherit": ["PATH", "HOME", "XDG_RUNTIME_DIR"]}


@pytest.fixture
def charliecloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has no other container tool."""
    find_tools("charliecloud")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in os.listdir("/usr/bin"):
        if name not in ("podman", "docker", "apptainer", "singularity"):
            (folder / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def shop() -> Iterator[Registry]:
    with registry() as server:
        yield server


async def run_twice(service: Service, way: str, **document: Any) -> list[bytes]:
    """What two sessions say, one after the other; offers know that the second has less to wait for."""
    outputs = []
    for turn in range(2):
        made = await ask(service, time="1m", memory="128MiB", **document)
        offer = made.offers[0].offer
        assert offer.way == way
        if turn:
            assert offer.staging.there, "nothing is to be fetched or made"
        session = await service.sessions.accept(made.offers[0].id, ME)
        done = await over(service, session.id, seconds=120)
        platform = service.platforms.get("here")
        words = await platform.output(done.id, "stderr", 0, 10_000)
        assert done.phase is Phase.COMPLETED, (done.end, words)
        assert b"fetching" not in words
        outputs.append(await platform.output(done.id, "stdout", 0, 100))
    return outputs


def list_unpacked(service: Service) -> list[Path]:
    return sorted(service.settings.home.glob("**/kept/image-unpacked-*"))


async def forget(service: Service) -> None:
    """Empty the cache: what is unpacked goes, and is counted until then."""
    [report] = await service.caches.list(ME, "here")
    [entry] = [entry for entry in report.entries if entry.title.endswith("unpacked")]
    assert entry.size > 1 << 20, "the room that the unpacked image takes"
    assert await service.caches.remove(ME, "here", (), timedelta(0))
    assert list_unpacked(service) == []


@pytest.mark.usefixtures("charliecloud")
async def test_charliecloud_finds_an_image_of_a_registry_unpacked_and_the_next_session_fetches_nothing(
    tmp_path: Path, shop: Registry
) -> None:
    await asyncio.to_thread(images.oci_archive, tmp_path / "tool.tar", Entrypoint=[], Env=["PATH=/bin", "BY=shop"])
    shop.push("tools/unpacked", "1", tmp_path / "tool.tar")
    image = f"{shop.address}/tools/unpacked:1"
    async with serving(tmp_path / "home", platforms={"here": LOCAL}) as service:
        outputs = await run_twice(service, "charliecloud", image=image, run=["sh", "-c", "echo by $BY; pwd"])
        assert outputs == [b"by shop\n/work\n"] * 2
        assert shop.fetched() == 2, "a configuration and a layer, once"
        assert len(list_unpacked(service)) == 1
        await forget(service)


@pytest.mark.usefixtures("charliecloud")
async def test_charliecloud_finds_an_archive_unpacked_and_volumes_have_places_in_it(tmp_path: Path) -> None:
    archive = tmp_path / "tool.tar"
    await asyncio.to_thread(images.oci_archive, archive, Entrypoint=[], Env=["PATH=/bin"])
    (tmp_path / "words").write_text("brought\n")
    async with serving(tmp_path / "home", platforms={"here": LOCAL}) as service:
        document = {
            "image": f"oci-archive:{archive}",
            "run": ["sh", "-c", "cat /far/away/words; touch /app/mine || echo kept"],
            "data": [{"location": f"file://{tmp_path}/words", "path": "/far/away"}],
        }
        assert await run_twice(service, "charliecloud", **document) == [b"brought\nkept\n"] * 2
        [folder] = list_unpacked(service)
        assert not (folder / "unpacked" / "root" / "app" / "mine").exists()
        stamp = (folder / "record.json").stat().st_mtime_ns
        await asyncio.to_thread(images.oci_archive, archive, Entrypoint=[], Env=["PATH=/bin", "OTHER=1"])
        await run_twice(service, "charliecloud", image=f"oci-archive:{archive}", run=["sh", "-c", "echo $OTHER"])
        assert len(list_unpacked(service)) == 2, "another image by the same path is another"
        assert (folder / "record.json").stat().st_mtime_ns == stamp


async def test_podman_finds_a_singularity_image_unpacked_once_for_all(tmp_path: Path) -> None:
    if "unsquashfs" not in find_tools("podman") or not shutil.which("mksquashfs"):
        pytest.skip("squashfs-tools is not installed")
    path = await asyncio.to_thread(images.sif, tmp_path / "tool.sif", 'echo "run: $1"\n')
    async with serving(tmp_path / "home", platforms={"here": LOCAL}) as service:
        assert await run_twice(service, "podman", image=str(path), run=["a b"]) == [b"run: a b\n"] * 2
        assert len(list_unpacked(service)) == 1
        await forget(service)
