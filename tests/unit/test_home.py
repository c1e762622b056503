"""Where the state is, and who serves it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sublet.home import Home, sublet_home
from sublet.serving import process_start, read_serving, record_serving


def test_the_home_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path / "mine"))
    assert sublet_home().root == str(tmp_path / "mine")
    monkeypatch.delenv("SUBLET_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert sublet_home().root == str(tmp_path / "data" / "sublet")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sublet_home().socket == str(tmp_path / ".local/share/sublet/run/sublet.sock")


def test_the_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "a" / "sublet"))
    home.make()
    home.make()
    assert os.stat(home.root).st_mode & 0o777 == 0o700
    assert os.stat(home.run).st_mode & 0o777 == 0o700


def test_who_serves_is_known_while_it_lives(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "sublet"))
    home.make()
    assert read_serving(home) is None
    record_serving(home, "http://127.0.0.1:8080", home.socket)
    found = read_serving(home)
    assert found is not None
    assert (found.pid, found.url, found.socket) == (os.getpid(), "http://127.0.0.1:8080", home.socket)


def test_a_pid_that_was_used_again_is_not_taken_for_the_service(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "sublet"))
    home.make()
    record_serving(home, "", home.socket)
    record = json.loads(Path(home.state).read_text())
    Path(home.state).write_text(json.dumps({**record, "start": record["start"] - 1}))
    assert read_serving(home) is None
    Path(home.state).write_text("half a rec")
    assert read_serving(home) is None


def test_a_process_that_ended_but_was_not_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process_start(process.pid) is not None
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(process.pid) is None
