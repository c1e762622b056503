"""Tab in a real shell: files, sessions, platforms, systems, queues and annexes; silent, and nothing is started."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pty import openpty

import pytest

from sublet.booking.views.platforms import PlatformList, PlatformView
from sublet.booking.views.results import ResultFileView, ResultList
from sublet.booking.views.sessions import SessionPage
from tests.canned import NOW, Said, a_session
from tests.cli.conftest import Serve

BIN = Path(sys.executable).parent
PATIENCE = 30.0


def completed(line: str, shell: str = "bash", **environment: str) -> list[str]:
    """What Tab offers after this line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_SUBLET_COMPLETE": f"{shell}_complete"}
    typed = [str(BIN / "sublet")]
    done = subprocess.run(
        typed, env={**os.environ, **environment, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [said.partition(",")[2] for said in done.stdout.splitlines() if said]


@pytest.fixture
def service(canned: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path / "home"))
    views = (
        replace(a_session(), name="two words"),
        replace(a_session(), id="77b1c2d3-0", short="77b1c2d3", name="fit", phase="RUNNING"),
    )
    here = PlatformView(name="here", kind="local", terms="booked")
    files = ("out.csv", "runs/1/o.txt", "of two words", "o,1.csv", "o$x", "o\nplain,p", "o*")
    canned(
        {
            "GET /v1/sessions": Said(SessionPage(items=views)),
            "GET /v1/platforms": Said(PlatformList(items=(here,))),
            "GET /v1/sessions/3f2a/results": Said(
                ResultList(items=tuple(ResultFileView(path=path, size=1, modified=NOW) for path in files))
            ),
        }
    )


@pytest.mark.usefixtures("service")
def test_names_of_what_there_is_are_completed() -> None:
    assert completed("sublet status ") == ["3f2a91c0", "77b1c2d3"]
    assert completed("sublet logs -f 77") == ["77b1c2d3"]
    assert completed("sublet result --table f") == ["fit"], "a name that was begun, where ids come first"
    assert completed("sublet logs t") == [], "which a shell would take for two"
    assert completed("sublet cancel 77b1c2d3 ") == ["3f2a91c0"]  # each once
    assert completed("sublet run --after 3") == ["3f2a91c0"]
    assert completed("sublet run --platform ") == ["here"]
    assert completed("sublet platform show h") == ["here"]
    assert completed("sublet result 3f2a o") == ["out.csv"], "and no file that a shell would take apart"
    assert completed("sublet result 3f2a runs/") == ["runs/1/o.txt"]
    assert "gpu-shared" in completed("sublet run --platform expanse --queue g")
    assert completed("sublet annex create x --system exp") == ["expanse"]
    assert completed("sublet run --interactive ") == ["lab", "shell", "desktop", "code", "rstudio"]
    assert completed("sublet stat") == ["status"]


@pytest.mark.parametrize("line", ["sublet status ", "sublet run --platform ", "sublet annex status ", "sublet accept "])
def test_without_a_service_there_is_silence_and_none_is_started(line: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert completed(line, SUBLET_HOME=str(home)) == []
    assert not (home / "run").exists()


def test_every_shell_has_a_script() -> None:
    for shell in ("bash", "zsh", "fish"):
        typed = [str(BIN / "sublet"), "completion", shell]
        script = subprocess.run(typed, capture_output=True, text=True, check=True).stdout
        assert "_SUBLET_COMPLETE" in script


@contextmanager
def bash(directory: Path) -> Iterator[int]:
    """A bash that has our completion, at a terminal."""
    master, slave = openpty()
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PS1": "ready> ", "TERM": "dumb"}
    typed = ["setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"]
    with subprocess.Popen(typed, env=environment, cwd=directory, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        try:
            yield master
        finally:
            process.kill()
            os.close(master)


def press(master: int, keys: str, until: str) -> str:
    """Press keys, and read until the terminal shows this."""
    os.write(master, keys.encode())
    shown, deadline = "", time.monotonic() + PATIENCE
    while until not in shown:
        ready, _, _ = select.select([master], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"{until} was not shown, but: {shown!r}"
        shown += os.read(master, 65536).decode("utf-8", "replace")
    return shown


@pytest.mark.usefixtures("service")
def test_tab_in_a_real_bash_completes_files_and_sessions(tmp_path: Path) -> None:
    (tmp_path / "job with spaces.yaml").touch()
    (tmp_path / "simulate.py").touch()
    with bash(tmp_path) as master:
        press(master, 'eval "$(sublet completion bash)"; echo it is $((6 * 7))\n', "it is 42")
        press(master, "sublet ask jo\t", "job\\ with\\ spaces.yaml")
        press(master, "\x15sublet run -- python sim\t", "simulate.py")
        press(master, "\x15sublet status 77\t", "77b1c2d3")
