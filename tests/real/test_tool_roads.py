"""A real Slurm site brings data by its own rsync, git and curl, and this machine keeps nothing of it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.service import Service
from tests.contract.services import ME
from tests.git_server import git_server, program
from tests.real.staging import MIB, SUM, begin, check_road, find_files, output, over, roads, run
from tests.rsync_server import SECRET, serve_rsync
from tests.sites import Site
from tests.storage_servers import serve_s3, serve_webdav, sign_address

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
            await check_road(service, session, f"{hashlib.sha256(content).hexdigest()}  -\n", road)
        assert SECRET not in seen
        assert site.on("login", "grep", "-rl", SECRET, "/home/researcher", check=False) == ""
        assert not find_files(home, "cube.bin")


async def test_what_the_site_can_not_reach_by_rsync_is_brought_here_and_it_is_told_why(
    service: Service, tmp_path: Path
) -> None:
    with serve_rsync(tmp_path) as server:  # on the loopback of this machine, which the site has none of
        (server.folder / "cube.bin").write_bytes(b"near")
        session = await run(service, run=SUM, data=[f"{server.begin}/open/cube.bin"])
        told = await check_road(
            service, session, f"{hashlib.sha256(b'near').hexdigest()}  -\n", "was brought here from 127.0.0.1"
        )
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
        await check_road(service, session, "9\n300000\n", road)
    assert not find_files(home, "*.csv")
    site.on("researcher@login", "rm", "-rf", "mine")


@contextmanager
def without_python(site: Site, host: str) -> Iterator[None]:
    """A host on which people can run no Python; root still can."""
    pythons = "for file in /usr/bin/python3*; do [ -h $file ] || chmod {} $file; done"
    site.on(host, "sh", "-c", pythons.format("o-rx"))
    try:
        yield
    finally:
        site.on(host, "sh", "-c", pythons.format("o+rx"))


async def test_a_site_without_python_brings_files_and_folders_of_web_servers_by_its_own_curl(
    service: Service, site: Site, home: Path, tmp_path: Path
) -> None:
    here, contents = site.facts["here"], {name: os.urandom(MIB) for name in ("kept.bin", "signed.bin", "dav.bin")}
    for place in ("s3/bucket", "dav"):
        (tmp_path / place).mkdir(parents=True)
    for name, content in contents.items():
        (tmp_path / ("dav" if name == "dav.bin" else "s3/bucket") / name).write_bytes(content)
    with (
        serve_s3(tmp_path / "s3", here) as s3,
        serve_webdav(tmp_path / "dav", here) as dav,
        without_python(site, "login"),
    ):
        assert site.does("researcher@login", "python3", "-c", "").returncode, "it is hidden"
        for server in (s3, dav):
            await service.credentials.add(ME, server.credential)
        signed, seen = await asyncio.to_thread(sign_address, s3, "bucket", "signed.bin"), ""
        data = [
            {"location": f"s3+http://{s3.address}/bucket/kept.bin", "path": "kept.bin"},
            {"location": signed, "path": "signed.bin"},
            {"location": f"dav://{dav.address}/dav.bin", "path": "dav.bin"},
            {"location": f"dav://{dav.address}/", "path": "in"},
        ]
        sums = "sha256sum <kept.bin; sha256sum <signed.bin; sha256sum <dav.bin; sha256sum <in/dav.bin"
        for roads_taken in (["fetched by far"] * 4, ["in the cache of far"] * 4):
            session = await begin(service, run=["sh", "-c", sums], data=data)
            while (await service.sessions.get(session.id, ME)).phase is Phase.PREPARING:
                seen += await asyncio.to_thread(site.on, "login", "ps", "-ef", "ww")
            session = await over(service, session.id)
            assert session.phase is Phase.COMPLETED, session.end
            digests = [f"{hashlib.sha256(content).hexdigest()}  -" for content in contents.values()]
            assert (await output(service, session)).splitlines() == [*digests, digests[-1]]
            told = await roads(service, session)
            assert [road in each for road, each in zip(roads_taken, told, strict=True)] == [True] * 4, told
    assert not [name for name in contents if find_files(home, name)]
    for secret in (s3.credential.secret, dav.credential.secret, "X-Amz-Signature"):
        assert secret not in seen
        assert site.on("login", "grep", "-rl", secret, "/home/researcher", check=False) == ""
