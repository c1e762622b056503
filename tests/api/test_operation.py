"""What an operator does to a service that runs: signals, logs that rotate, health, and the root in a browser."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.server.app import make_app
from sublet.service import Service
from tests.api.conftest import HOST
from tests.databases import put_database
from tests.serving import PATIENCE, Serving, eventually

BASIC = """
hold = "5m"
port = 0
platforms = {trial = {kind = "memory"}}
[logs]
file = "logs/operated.log"
largest = "600B"
keep = 2
"""


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a small log of its own."""
    home = tmp_path_factory.mktemp("operated") / "home"
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(BASIC)
    serving = Serving(home)
    serving.start()
    try:
        yield serving
    finally:
        serving.stop()


def hang_up(serving: Serving) -> None:
    assert serving.process
    serving.process.send_signal(signal.SIGHUP)


def logged(log: Path, event: str) -> list[dict[str, Any]]:
    """The lines of an event, in all files that the log became."""
    files = sorted(log.parent.glob(f"{log.name}*"), reverse=True)
    try:
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    except FileNotFoundError:  # one is being rotated just now
        return logged(log, event)
    return [line for line in lines if line["event"] == event]


def reloaded(serving: Serving, log: Path, event: str = "settings.reloaded") -> dict[str, Any]:
    """What the log says after one more SIGHUP."""
    before = logged(log, event)
    hang_up(serving)
    found: Any = eventually(lambda: [one for one in logged(log, event) if one not in before], event)
    return found[0]


def test_sighup_opens_a_log_that_was_moved_away_and_takes_up_settings(operated: Serving) -> None:
    log, moved = operated.home / "logs" / "operated.log", operated.home / "moved.log"
    log.rename(moved)  # as logrotate does
    settings = operated.home / "sublet.toml"
    settings.write_text(BASIC.replace("5m", "7m").replace("port = 0", "port = 1234"))
    told = reloaded(operated, log)
    assert (told["taken"], told["need_restart"]) == (["hold"], ["port"])
    assert log.stat().st_mode & 0o777 == 0o600
    assert "settings.reloaded" not in moved.read_text()
    settings.write_text("hold = 'for ever'")
    assert "hold" in reloaded(operated, log, "settings.refused")["why"]
    settings.write_text(BASIC.replace("5m", "9m").replace("memory", "memroy"))
    assert "memroy" in reloaded(operated, log, "settings.refused")["why"], "a start would be refused, too"
    settings.write_text("mode = 'gateway'\n" + BASIC.replace("5m", "9m"))
    assert "would be a gateway by these settings" in reloaded(operated, log, "settings.refused")["why"]
    settings.write_text(BASIC)
    assert reloaded(operated, log)["taken"] == ["hold"]
    assert operated.log() == "", "all of it is in the file"


def test_the_log_rotates_by_size_and_old_ones_go(operated: Serving) -> None:
    log = operated.home / "logs" / "operated.log"
    oldest = log.with_name("operated.log.2")
    for _ in range(30):
        reloaded(operated, log)
        files = sorted(file.name for file in log.parent.glob("operated.log*"))
        assert len(files) <= 3, files
    assert files == ["operated.log", "operated.log.1", "operated.log.2"]
    assert 600 < oldest.stat().st_size < 1200
    for number in (3, 4):  # from when more were kept
        log.with_name(f"operated.log.{number}").touch()
    for _ in range(10):
        reloaded(operated, log)
    assert sorted(file.name for file in log.parent.glob("operated.log*")) == files


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a home that is read-only")
def test_a_home_that_is_read_only_is_told_by_every_command_and_by_serve(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in (home, home / "run", home / "logs"):
        folder.mkdir(mode=0o700)
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    for words in (("serve", "--port", "0", "--platform", "memory"), ("ps",), ("run", "--", "true")):
        typed = subprocess.run(
            ["unshare", "--mount", "sh", "-c", mount, "sh", home, sys.executable, "-m", "sublet", *words],
            env={**os.environ, "SUBLET_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if "permission denied" in typed.stderr.lower():
            pytest.skip("nothing can be mounted here")
        assert (typed.returncode, typed.stdout) == (2, "")
        assert typed.stderr.startswith(
            f"error: SUBLET_HOME ({home}) can't be created or written: Read-only file system."
        )
        assert "hint: Make a directory that you can write" in typed.stderr


def test_a_log_that_cannot_be_written_is_told_where_the_service_is_started(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sublet.toml").write_text('[logs]\nfile = "/nowhere/sublet.log"\n')
    serving = Serving(tmp_path / "home", "--platform", "memory")
    with pytest.raises(AssertionError, match=r"/nowhere/sublet\.log can.t be written: No such file"):
        serving.start()


def test_a_service_in_a_terminal_ends_when_the_terminal_is_closed(tmp_path: Path) -> None:
    put_database(tmp_path / "sublet.db")
    pid, terminal = pty.fork()
    if pid == 0:
        words = [sys.executable, "-m", "sublet.cli", "serve", "--platform", "memory"]
        os.execve(sys.executable, words, {**os.environ, "SUBLET_HOME": str(tmp_path)})
    said = b""
    while b"service.listening" not in said:
        said += os.read(terminal, 65536)
    os.kill(pid, signal.SIGHUP)  # with its terminal there, this is an order to reload
    while b"settings.reloaded" not in said:
        said += os.read(terminal, 65536)
    os.close(terminal)
    deadline = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("it still runs")
        time.sleep(0.02)
    assert ended[1] == 0
    assert not (tmp_path / "run" / "service.json").exists()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service of this process, whose loop turns only when a test says so."""
    put_database(tmp_path / "sublet.db")
    settings = Settings.load(tmp_path, platforms={"trial": {"kind": "memory"}})
    async with open_service(settings, loop=False) as opened:
        yield opened


@pytest.fixture
async def caller(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=make_app(service, "owner"))
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as client:
        yield client


async def health_of(caller: httpx2.AsyncClient) -> tuple[int, str, str]:
    answer = await caller.get("/health")
    said = answer.json()
    return answer.status_code, said["status"], said["problem"]


@pytest.mark.anyio
async def test_health_is_503_while_the_loop_does_not_turn(service: Service, caller: httpx2.AsyncClient) -> None:
    assert await health_of(caller) == (200, "ok", "")
    service.loop_state.turned = time.monotonic() - 1000
    status, said, why = await health_of(caller)
    assert (status, said) == (503, "failing")
    assert "no session has been looked after" in why
    service.loop_state.turned = time.monotonic()
    service.loop_state.trouble = "the database can't be used (disk is full)"
    assert (await health_of(caller))[0] == 503
    assert (await caller.head("/health")).status_code == 503
    service.loop_state.trouble = ""
    assert await health_of(caller) == (200, "ok", "")


@pytest.mark.anyio
async def test_health_is_503_when_the_database_was_removed_or_replaced(
    service: Service, caller: httpx2.AsyncClient, tmp_path: Path
) -> None:
    (tmp_path / "sublet.db").rename(tmp_path / "elsewhere.db")
    status, _, why = await health_of(caller)
    assert (status, "its file is gone" in why) == (503, True)
    put_database(tmp_path / "sublet.db")
    assert "replaced" in (await health_of(caller))[2]
    (tmp_path / "elsewhere.db").rename(tmp_path / "sublet.db")
    assert await health_of(caller) == (200, "ok", "")


@pytest.mark.anyio
async def test_the_root_leads_a_browser_to_the_pages_and_programs_to_the_broker(caller: httpx2.AsyncClient) -> None:
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    answer = await caller.get("/", headers={"accept": browser})
    assert (answer.status_code, answer.headers["location"]) == (303, "/web/")
    for accept in ("*/*", "application/json", "application/yaml"):
        answer = await caller.get("/", headers={"accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
        assert "/requests" in answer.json()["hint"]
