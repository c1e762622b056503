"""Large input on a site with a second factor: there before its session starts, moved once, past memory."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sublet.client import Client, Session
from sublet.kernel.checksums import compute_checksum
from tests.real.clusters import logged_in, ssh_options
from tests.serving import Serving
from tests.sites import Site

pytestmark = pytest.mark.slurm
MIB = 1 << 20
SIZES = [
    pytest.param(96, 32, id="96MiB"),
    pytest.param(1024, 64, id="1GiB", marks=pytest.mark.soak),
]  # of what passes through a service, and of the memory that it may need more for that, both in MiB
LONG = 300.0  # seconds
SMALL = b"small"
SUM = ["sh", "-c", "sha256sum <cube.bin; date +%s"]


@contextmanager
def serving_file(folder: Path, host: str, size: int) -> Iterator[tuple[str, Path]]:
    """So many MiB over HTTP, by a server that is nobody's here, and what it was asked."""
    log = folder / "asked"
    with (folder / "cube.bin").open("wb") as file:
        for number in range(size):
            file.write(hashlib.sha256(str(number).encode()).digest() * (1 << 15))
    (folder / "small").mkdir()
    (folder / "small" / "cube.bin").write_bytes(SMALL)
    words = [sys.executable, "-u", "-m", "http.server", "-b", host, "-d", str(folder), "0"]
    with log.open("wb") as output, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=output) as server:
        assert server.stdout
        port = server.stdout.readline().split(b"port ")[1].split()[0].decode()
        try:
            yield f"http://{host}:{port}", log
        finally:
            server.terminate()


@pytest.fixture
def serving(site: Site, tmp_path: Path) -> Iterator[Serving]:
    home = tmp_path / "h"
    home.mkdir()
    far = {"kind": "slurm", "host": site.host, "user": "researcher", "poll": "PT0.5S", "look": "PT0.2S", "calls": 100}
    lines = [f"{name} = {json.dumps(value)}" for name, value in far.items()]
    options = [f"{name} = {json.dumps(value)}" for name, value in ssh_options(site).items()]
    for name, more in (("far", []), ("shut", ["downloads = false", 'directory = ".sublet-shut"'])):
        text = "\n".join([f"[platforms.{name}]", *lines, *more, f"[platforms.{name}.ssh]", *options, ""])
        with (home / "sublet.toml").open("a") as file:
            file.write(text)
    with logged_in(site, home):
        started = Serving(home)
        yield started
        started.stop()
        site.on("researcher@login", "rm", "-rf", ".sublet", ".sublet-shut")  # the next one needs its room


def run(client: Client, platform: str, address: str, digest: str) -> Session:
    """A session that has read its input."""
    offers = client.ask(run=SUM, data=[address], platform=platform, queue="debug", time="3m", memory="64MiB")
    session = offers[0].accept().wait(LONG)
    assert session.phase == "COMPLETED", session.end
    assert "".join(session.logs()).split()[0] == digest
    return session


def read_peak(serving: Serving) -> int:
    """The most memory that the service has had."""
    assert serving.process
    status = Path(f"/proc/{serving.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def count_gets(log: Path) -> int:
    """How often the file itself was asked for."""
    return log.read_text().count('"GET /cube.bin')


@pytest.mark.parametrize("platform", ["far", "shut"])
@pytest.mark.parametrize(("size", "growth"), SIZES)
def test_it_is_there_before_its_session_starts_and_is_moved_once_past_the_services_memory(
    serving: Serving, site: Site, tmp_path: Path, platform: str, size: int, growth: int
) -> None:
    client = serving.start()
    host = ".".join([*site.host.split(".")[:3], "1"])
    with serving_file(tmp_path, host, size) as (server, log):
        run(client, platform, f"{server}/small/cube.bin", hashlib.sha256(SMALL).hexdigest())  # all is loaded by now
        digest, address = compute_checksum(tmp_path / "cube.bin", "sha256"), f"{server}/cube.bin"
        before = read_peak(serving)
        first = run(client, platform, address, digest)
        moved = count_gets(log)
        assert moved >= 1
        kinds = [event.kind for event in client.events(session=first.id)]
        assert kinds.index("session.staged") < kinds.index("session.submitted"), kinds
        second = run(client, platform, address, digest)
        assert count_gets(log) == moved
        assert second.view.staging is not None
        assert second.view.staging.there == ("cube.bin",)
        assert read_peak(serving) - before < growth * MIB
        assert sum(file.stat().st_size for file in serving.home.rglob("*") if file.is_file()) < size * MIB // 2
