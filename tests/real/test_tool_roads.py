"""A real Slurm site brings data by its own rsync and git, from real servers, and this machine keeps nothing of it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.service import Service
from tests.contract.services import ME
from tests.git_server import git_server, program
from tests.real.staging import MIB, SUM, begin, find_files, output, over, roads, run
from tests.rsync_server import SECRET, serve_rsync
from tests.sites import Site

pytestmark = pytest.mark.anyio


async def test_the_site_brings_files_by_its_own_rsync_once_and_its_password_is_seen_by_nobody(
    service: Service, site: Site, home: Path, tmp_path: Path
) -> None:
    content = os.urandom(8 * MIB)
    with serve_rsync(tmp_path, site.facts["here"]) as server:
        (server.folder / "cube.bin").write_bytes(content)
        os.utime(server.folder / "cube.bin", (time.time() - 60,) * 2)
        await service.credentials.add(ME, server.credential)
        address, seen = f"{server.begin}/closed/cube.bin", ""
        for road in ("fetched by far", "in the cache of far"):
            session = await begin(service, run=SUM, data=[address])
            while (await service.sessions.get(session.id, ME)).phase is Phase.PREPARING:
                seen += await asyncio.to_thread(site.on, "login", "ps", "-ef", "ww")
            session = await over(service, session.id)
            assert session.phase is Phase.COMPLETED, session.end
            assert await output(service, session) == f"{hashlib.sha256(content).hexdigest()}  -\n"
            [told] = await roads(service, session)
            assert road in told, told
        assert SECRET not in seen
        assert site.on("login", "grep", "-rl", SECRET, "/home/researcher", check=False) == ""
        assert not find_files(home, "cube.bin")


async def test_what_the_site_can_not_reach_by_rsync_is_brought_here_and_it_is_told_why(
    service: Service, tmp_path: Path
) -> None:
    with serve_rsync(tmp_path) as server:  # on the loopback of this machine, which the site has none of
        (server.folder / "cube.bin").write_bytes(b"near")
        session = await run(service, run=SUM, data=[f"{server.begin}/open/cube.bin"])
        assert session.phase is Phase.COMPLETED, session.end
        assert await output(service, session) == f"{hashlib.sha256(b'near').hexdigest()}  -\n"
        [told] = await roads(service, session)
        assert "was brought here from 127.0.0.1" in told, told
        assert "far can't reach it" in told, told


async def test_the_site_brings_a_commit_by_its_own_git_once_and_this_machine_keeps_nothing(
    service: Service, site: Site, home: Path, tmp_path: Path
) -> None:
    with git_server(tmp_path, site.facts["here"]) as server:
        repository = server.repository("owner/code")
        commit = repository.commit({"sim/run.sh": program("echo by $0\n"), "README": "hello\n"})
        for road, ref in (("fetched by far", ""), ("in the cache of far", f"@{commit}")):
            data = [{"location": f"git+{repository.url}{ref}", "path": "code"}]
            session = await run(service, run=["sh", "-c", "sh code/sim/run.sh; ls -A code"], data=data)
            assert session.phase is Phase.COMPLETED, session.end
            assert (await output(service, session)).split() == ["by", "code/sim/run.sh", "README", "sim"]
            [told] = await roads(service, session)
            assert road in told, told
            assert server.url.rpartition("/")[2] in told or "cache" in told
        assert not find_files(home, "run.sh")
    with git_server(tmp_path / "near") as near:  # on the loopback of this machine, which the site can't reach
        repository = near.repository("owner/code")
        repository.commit({"README": "near\n"})
        data = [{"location": f"git+{repository.url}", "path": "code"}]
        session = await run(service, run=["cat", "code/README"], data=data)
        assert (session.phase, await output(service, session)) == (Phase.COMPLETED, "near\n"), session.end
        [told] = await roads(service, session)
        assert "was brought here from 127.0.0.1" in told, told
        assert "far can't reach it" in told, told


async def test_a_folder_of_another_system_is_streamed_from_one_login_to_the_other(
    service: Service, site: Site, home: Path
) -> None:
    site.on("researcher@login", "sh", "-c", "mkdir -p mine/deep; seq 9 >mine/deep/own.csv; seq 300000 >mine/large.csv")
    for road in ("streamed from shut to far", "in the cache of far"):
        data = [{"location": "ssh://shut/~/mine/", "path": "in"}]
        session = await run(service, run=["tail", "-qn", "1", "in/deep/own.csv", "in/large.csv"], data=data)
        assert (session.phase, await output(service, session)) == (Phase.COMPLETED, "9\n300000\n"), session.end
        [told] = await roads(service, session)
        assert road in told, told
    assert not find_files(home, "*.csv")
    site.on("researcher@login", "rm", "-rf", "mine")
