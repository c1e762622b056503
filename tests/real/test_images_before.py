"""An image of a registry is fetched before its session's time begins, also on this machine; and offers know of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.data.model.throughput import MAKE_LEAST
from sublet.kinds.images import ArchiveFile
from sublet.kinds.inside.container_images import name_kept
from sublet.platforms.local.images import LocalImages
from sublet.service import Service
from tests.contract.services import ME, ask, over, serving
from tests.loaded_images import remove_image
from tests.real import images
from tests.registries import Registry, registry
from tests.web_source import serve_source

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry without certificates that Podman is told to trust."""
    if not shutil.which("podman"):
        pytest.skip("there is no Podman here")
    with registry() as server:
        (tmp_path / "registries.conf").write_text(f'[[registry]]\nlocation = "{server.address}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(tmp_path / "registries.conf"))
        yield server


async def test_a_session_finds_its_image_in_the_store_and_the_next_offer_needs_no_time_for_it(
    tmp_path: Path, shop: Registry
) -> None:
    await asyncio.to_thread(images.oci_archive, tmp_path / "tool.tar", Entrypoint=[], Env=["PATH=/bin"])
    shop.push("tools/before", "1", tmp_path / "tool.tar")
    image = f"{shop.address}/tools/before:1"
    local = {"kind": "local", "inherit": ["PATH", "HOME", "XDG_RUNTIME_DIR", "CONTAINERS_REGISTRIES_CONF"]}
    try:
        async with serving(tmp_path / "home", platforms={"here": local}) as service:
            document = {"image": image, "run": ["sh", "-c", "echo ran"], "time": "1m", "memory": "128MiB"}
            first = await ask(service, **document)
            offer = first.offers[0].offer
            if offer.way != "podman":
                pytest.skip(f"images are run by {offer.way} here")
            assert offer.staging.there == ()
            taken = await service.sessions.accept(first.offers[0].id, ME)
            done = await over(service, taken.id, seconds=120)
            platform = service.platforms.get("here")
            words = await platform.output(done.id, "stderr", 0, 10_000)
            assert done.phase is Phase.COMPLETED, (done.end, words)
            assert b"fetching" not in words, "it was fetched within the session's time"
            again = (await ask(service, **document)).offers[0].offer
            assert again.staging.there == (image,)
            assert again.staging.time.high == timedelta(0)
    finally:
        await asyncio.to_thread(remove_image, "podman", image)


@pytest.mark.parametrize("address", ["path", "file", "http"])
async def test_an_archive_is_loaded_before_its_session_once_for_all_and_leaves_the_store_with_its_entry(
    tmp_path: Path, address: str
) -> None:
    if not shutil.which("podman"):
        pytest.skip("there is no Podman here")
    archive = tmp_path / "tool.tar"
    await asyncio.to_thread(images.oci_archive, archive, Entrypoint=[], Env=["PATH=/bin", f"BY={address}"])
    stored = name_kept(ArchiveFile(str(archive)).find_id())
    with serve_source("127.0.0.1") as source:
        web = source.put("/tool.tar", archive.read_bytes())
        image = {"path": f"oci-archive:{archive}", "file": f"file://{archive}", "http": web}[address]
        async with serving(tmp_path / "home", platforms={"here": {"kind": "local"}}) as service:
            document = {"image": image, "run": ["sh", "-c", "echo by $BY"], "time": "1m", "memory": "128MiB"}
            for turn in range(2):
                made = await ask(service, **document)
                offer = made.offers[0].offer
                if offer.way != "podman":
                    pytest.skip(f"images are run by {offer.way} here")
                assert (offer.staging.time.high < MAKE_LEAST) is bool(turn), "the second time it is there"
                session = await service.sessions.accept(made.offers[0].id, ME)
                begun = await eventually_ready(service, session.id)
                assert has_image(stored), f"it is there before the session runs ({begun.phase})"
                done = await over(service, session.id, seconds=120)
                platform = service.platforms.get(offer.platform)
                words = await platform.output(done.id, "stderr", 0, 10_000)
                assert done.phase is Phase.COMPLETED, (done.end, words)
                assert await platform.output(done.id, "stdout", 0, 100) == f"by {address}\n".encode()
            assert len(source.gets("/tool.tar")) == (1 if address == "http" else 0)
            [report] = await service.caches.list(ME, offer.platform)
            titles = [entry.title for entry in report.entries]
            assert any(title.endswith("for podman") for title in titles), titles
            assert await service.caches.remove(ME, offer.platform, (), timedelta(0))
            assert not has_image(stored), "the store has it no longer than the cache"


def has_image(name: str) -> bool:
    return subprocess.run(["podman", "image", "inspect", name], capture_output=True, check=False).returncode == 0


async def eventually_ready(service: Service, id: str) -> Session:
    """A session as soon as it has been handed to its platform."""
    async with asyncio.timeout(120):
        while not (session := await service.sessions.get(id, ME)).job:
            await service.signals.wait(0.05)
        return session


async def test_an_image_that_no_tool_can_fetch_is_left_to_the_session(tmp_path: Path) -> None:
    store = LocalImages({"PATH": "/usr/bin:/bin"})
    for tool in ("podman", "apptainer", "charliecloud", "other"):
        assert not await store.fetch({tool: "/bin/false"}, "docker://127.0.0.1:9/none:1", tool, tmp_path / "image.sif")
        assert not await store.fetch({}, "docker://127.0.0.1:9/none:1", tool, tmp_path / "image.sif")
    assert await store.find({"podman": "/bin/false"}, ["docker://127.0.0.1:9/none:1"]) == []
