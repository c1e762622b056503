"""What goes wrong with data on its way to a real Slurm site is told, and half a file is never taken for a whole one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind
from sublet.service import Service
from tests.real.clusters import logged_in, ssh_options
from tests.real.staging import MIB, SUM, output, roads, run, settings_of
from tests.serving import Serving, eventually
from tests.sites import Site
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "forbidden": ({"code": 403}, "the server answered 403 Forbidden"),
    "shorter": ({"promised": MIB + 1000}, f"{MIB} of {MIB + 1000} bytes came"),
    "loop": ({"location": "/loop"}, "leads on and on"),
}


@pytest.mark.parametrize("platform", ["far", "shut"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_source_that_fails_is_told_and_nothing_is_run(
    service: Service, source: WebSource, site: Site, fault: str, platform: str
) -> None:
    how, words = FAULTS[fault]
    address = source.put(f"/{fault}", os.urandom(MIB), **how)
    await expect_failure(service, site, platform, {"location": address}, words)


async def expect_failure(service: Service, site: Site, platform: str, data: dict[str, Any], words: str) -> None:
    """A session fails before it runs, says why, and leaves nothing that looks whole."""
    session = await run(service, platform=platform, run=["true"], data=[{**data, "path": "cube.bin"}])
    assert session.end
    assert (session.phase, session.end.kind, session.started) == (Phase.FAILED, EndKind.STAGING_FAILED, None)
    assert words in session.end.detail, session.end.detail
    root = ".sublet" if platform == "far" else ".sublet-shut"
    left = site.on(
        "researcher@login", "sh", "-c", f"ls -d {root}/incoming/{session.id} {root}/kept/*/claim 2>/dev/null; true"
    )
    assert left == ""


@pytest.mark.parametrize("platform", ["far", "shut"])
async def test_a_wrong_checksum_and_a_file_that_is_gone_are_told(
    service: Service, source: WebSource, site: Site, platform: str
) -> None:
    address = source.put("/sum", b"x" * MIB)
    data = {"location": address, "checksum": f"sha256:{'0' * 64}"}
    await expect_failure(
        service, site, platform, data, f"its checksum is sha256:{hashlib.sha256(b'x' * MIB).hexdigest()}"
    )
    await expect_failure(service, site, platform, {"location": f"{address}/no"}, "404 Not Found")


@pytest.mark.parametrize("platform", ["far", "shut"])
async def test_what_changes_between_two_parts_is_brought_as_it_is_now(
    service: Service, source: WebSource, platform: str
) -> None:
    old, new = os.urandom(2 * MIB), os.urandom(2 * MIB)
    address = source.put(f"/{platform}/cube.bin", old, cut_at=MIB, changes=new)
    session = await run(service, platform=platform, run=SUM, data=[address])
    assert session.phase is Phase.COMPLETED, session.end
    assert await output(service, session) == f"{hashlib.sha256(new).hexdigest()}  -\n"


async def test_a_connection_that_is_cut_in_the_middle_goes_on_from_there(service: Service, source: WebSource) -> None:
    content = os.urandom(2 * MIB)
    address = source.put("/cut/cube.bin", content, cut_at=MIB)
    session = await run(service, run=SUM, data=[address])
    assert session.phase is Phase.COMPLETED, session.end
    assert await output(service, session) == f"{hashlib.sha256(content).hexdigest()}  -\n"
    assert [headers.get("Range") for headers in source.gets("/cut/cube.bin")] == [None, f"bytes={MIB}-"]


async def test_a_source_that_only_this_machine_reaches_is_streamed_and_that_is_remembered(
    service: Service,
) -> None:
    with serve_source("127.0.0.1") as near:
        for number in range(2):
            address = near.put(f"/{number}/cube.bin", os.urandom(MIB))
            session = await run(service, run=SUM, data=[address])
            assert session.phase is Phase.COMPLETED, session.end
            [told] = await roads(service, session)
            assert "streamed from 127.0.0.1" in told
            assert "far can't reach it" in told


async def test_names_that_could_lead_elsewhere_are_made_plain(service: Service, source: WebSource) -> None:
    source.put("/names/%0A..%2F..%2Fevil", b"x")
    address = f"http://{source.address}/names/%0A..%2F..%2Fevil"
    session = await run(service, run=["sh", "-c", "find -L data -type f"], data=[{"name": "cube", "location": address}])
    assert session.phase is Phase.COMPLETED, session.end
    assert await output(service, session) == "data/cube/_.._.._evil\n"


async def test_a_service_that_is_killed_in_the_middle_goes_on_and_what_came_is_not_brought_again(
    source: WebSource, site: Site, tmp_path: Path
) -> None:
    await asyncio.to_thread(kill_in_the_middle, source, site, tmp_path)


def kill_in_the_middle(source: WebSource, site: Site, tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    far = settings_of(site, home).platforms["far"]
    lines = [f"{name} = {json.dumps(value)}" for name, value in far.items() if not isinstance(value, dict)]
    ssh = "\n".join(f"{name} = {json.dumps(value)}" for name, value in ssh_options(site).items())
    (home / "sublet.toml").write_text("[platforms.far]\n" + "\n".join(lines) + f"\n[platforms.far.ssh]\n{ssh}\n")
    content = os.urandom(3 * MIB)
    address = source.put("/killed/cube.bin", content, pace=0.1)
    with logged_in(site, home):
        serving = Serving(home)
        try:
            client = serving.start()
            wish = {"run": SUM, "platform": "far", "queue": "debug", "time": "1m", "memory": "64MiB"}
            session = client.run(**wish, data=[address], wait=False)
            eventually(lambda: source.gets("/killed/cube.bin"), "it is fetched")
            serving.kill()
            client = serving.start()
            ended = client.session(session.id).wait(90)
            assert ended.phase == "COMPLETED", ended.end
        finally:
            serving.stop()
    assert len(source.gets("/killed/cube.bin")) == 1
