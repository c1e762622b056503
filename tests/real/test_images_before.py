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
from sublet.platforms.local.images import LocalImages
from tests.contract.services import ME, ask, over, serving
from tests.real import images
from tests.registries import Registry, registry

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
        await asyncio.to_thread(subprocess.run, ["podman", "rmi", "--force", image], capture_output=True, check=False)


async def test_an_image_that_no_tool_can_fetch_is_left_to_the_session(tmp_path: Path) -> None:
    store = LocalImages({"PATH": "/usr/bin:/bin"})
    for tool in ("podman", "apptainer", "charliecloud", "other"):
        assert not await store.fetch({tool: "/bin/false"}, "docker://127.0.0.1:9/none:1", tool, tmp_path / "image.sif")
        assert not await store.fetch({}, "docker://127.0.0.1:9/none:1", tool, tmp_path / "image.sif")
    assert await store.find({"podman": "/bin/false"}, ["docker://127.0.0.1:9/none:1"]) == []
