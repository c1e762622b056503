"""At a terminal of 80 columns: a line that is drawn over, tables that fit, colours, and an address in its own line."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from types import SimpleNamespace

import pytest

from sublet.booking.views.sessions import ConnectorView, SessionPage
from sublet.cli import progress as progress_module
from sublet.cli.progress import Progress
from sublet.cli.prompts import ask_for, ask_yes_or_no
from sublet.cli.screen import width_of
from tests.canned import ID, Said, a_session, a_yes, an_end, an_offer
from tests.cli.conftest import Serve, Type

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LAB = ConnectorView(kind="uri:jupyter-lab", status="AVAILABLE", protocol="http", location="http://x/connect/y/?token=z")
OUR_OWN = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")


def at_terminal(*words: str, columns: int = 80, **more: str) -> str:
    """What a Python program shows on a terminal of that width."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in OUR_OWN}
    environment |= {"TERM": "xterm", **more}
    with subprocess.Popen([sys.executable, *words], env=environment, stdin=slave, stdout=slave, stderr=slave):
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 65536):
                shown += piece
        except OSError:  # whoever wrote there is gone
            pass
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_progress_is_one_line_that_is_cut_to_the_width_and_drawn_over() -> None:
    program = (
        "from sublet.cli.progress import Progress\n"
        "line = Progress(wanted=True)\n"
        "for second in range(3):\n"
        "    line.show(f'waiting for 日本 {second} ' + 'and a very long reason ' * 9)\n"
        "line.end()\n"
    )
    shown = at_terminal("-c", program, columns=40)
    assert "\n" not in shown
    drawn = [part for part in shown.split("\r\x1b[K") if part]
    assert len(drawn) == 3
    assert all(width_of(part) < 40 and part.endswith("…") for part in drawn)


def test_without_a_terminal_there_is_a_plain_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    line = Progress(wanted=True)
    for second in range(600):
        clock[0] = float(second)
        line.show(f"waiting for {second} s")
    line.end()
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.splitlines() == [f"waiting for {second} s" for second in (30, 90, 210, 450)]


def test_nothing_is_said_of_what_is_waited_for_if_nobody_wants_to_know() -> None:
    program = "from sublet.cli.progress import Progress; Progress(wanted=True).show('waiting')"
    assert "waiting" in at_terminal("-c", program)
    assert at_terminal("-c", program, SUBLET_PROGRESS="no") == ""
    starts = (
        "import sublet.client.progress as progress\n"
        "progress.FIRST_WORD = 0\n"
        "progress.Waiting(print).pause(0, 'your service')"
    )
    assert "waiting for your service" in at_terminal("-c", starts)
    assert at_terminal("-c", starts, SUBLET_PROGRESS="no") == ""


@pytest.mark.parametrize(
    "ask", [lambda: ask_for("Code", "no"), lambda: ask_yes_or_no("Go on?", "no")], ids=["typed", "agreed"]
)
def test_what_follows_a_question_that_a_pipe_answers_begins_on_a_line_of_its_own(
    ask: Callable[[], object], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"y\n")))
    ask()
    assert capfd.readouterr().err.endswith(": \n")


@pytest.fixture
def sessions(canned: Serve) -> Callable[[], None]:
    views = [
        replace(a_session(), name="a name that is rather long, as names are", kind="jupyter-notebook", phase="RUNNING"),
        replace(
            a_session(), name="シミュレーション 🚀 " * 3, phase="FAILED", end=an_end(sentence="It exited with 3. " * 4)
        ),
    ]
    return lambda: canned({"GET /v1/sessions": Said(SessionPage(items=tuple(views)))}) and None


def test_a_list_fits_80_columns_and_has_colours_there(sessions: Callable[[], None]) -> None:
    sessions()
    shown = at_terminal("-m", "sublet", "ps", "--all")
    lines = COLOUR.sub("", shown).splitlines()
    assert all(width_of(line) <= 80 for line in lines), lines
    running, failed = (next(line for line in lines if phase in line) for phase in ("RUNNING", "FAILED"))
    assert width_of(running.partition("RUNNING")[0]) == width_of(failed.partition("FAILED")[0])
    assert "\x1b[31mFAILED\x1b[0m" in shown
    assert "\x1b" not in at_terminal("-m", "sublet", "ps", "--all", NO_COLOR="1")
    assert max(map(width_of, at_terminal("-m", "sublet", "ps", "-a", NO_COLOR="1", COLUMNS="60").splitlines())) <= 60


def test_what_is_piped_is_whole(sessions: Callable[[], None], type_in: Type) -> None:
    sessions()
    said = type_in("ps", "--all").out
    assert "as names are" in said
    assert "…" not in said
    assert "\x1b" not in said


def test_the_address_of_jupyterlab_comes_last_and_alone(type_in: Type, canned: Serve) -> None:
    lab = replace(a_session(), kind="interactive", phase="AVAILABLE", connectors=(LAB,))
    canned({f"GET /v1/sessions/{name}": Said(lab) for name in ("3f2a", ID)})
    assert type_in("status", "3f2a").out.splitlines()[-1] == LAB.location
    assert type_in("attach", "3f2a").out == f"{LAB.location}\n"


def test_run_shows_the_address_alone_when_it_is_ready(type_in: Type, canned: Serve) -> None:
    waiting = replace(a_session(), kind="interactive", phase="PREPARING")
    lab = replace(waiting, phase="AVAILABLE", connectors=(LAB,))
    over = replace(lab, phase="COMPLETED", connectors=(), end=an_end())
    canned(
        {
            "POST /v1/offersets": Said(a_yes(an_offer())),
            f"POST /v1/sessions/{ID}/accept": Said(waiting),
            f"GET /v1/sessions/{ID}": [Said(lab), Said(over)],
        }
    )
    typed = type_in("run", "--interactive", "lab")
    assert (typed.code, typed.err.splitlines()[-1]) == (0, LAB.location)


def test_a_session_to_connect_to_that_is_detached_says_how_to_attach(type_in: Type, canned: Serve) -> None:
    lab = replace(a_session(), kind="interactive", phase="ACCEPTED")
    canned({"POST /v1/offersets": Said(a_yes(an_offer())), f"POST /v1/sessions/{ID}/accept": Said(lab)})
    assert (
        "keeps running. Connect to it with: sublet attach 3f2a91c0"
        in type_in("run", "-d", "--interactive", "shell").err
    )


def test_a_detached_session_that_starts_later_is_not_said_to_run(type_in: Type, canned: Serve) -> None:
    start = datetime.now(UTC) + timedelta(hours=14, minutes=30)
    later = replace(a_session(), phase="WAITING", start=start, started=None)
    canned({"POST /v1/offersets": Said(a_yes(an_offer())), f"POST /v1/sessions/{ID}/accept": Said(later)})
    said = type_in("run", "-d", "--start", "in 14h", "--", "true").err.splitlines()[-1]
    assert re.fullmatch(r"It starts .* \(in 14 h \d+ min\)\. Follow it with: sublet logs -f 3f2a91c0", said), said


def test_attach_waits_for_a_session_that_has_not_started(type_in: Type, canned: Serve) -> None:
    lab = replace(a_session(), kind="interactive", phase="AVAILABLE", connectors=(LAB,))
    canned(
        {
            "GET /v1/sessions/3f2a": Said(replace(lab, phase="PREPARING", connectors=())),
            f"GET /v1/sessions/{ID}": [Said(replace(lab, phase="PREPARING", connectors=())), Said(lab)],
        }
    )
    assert type_in("attach", "3f2a").out == f"{LAB.location}\n"


def test_python_m_sublet_is_the_command(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sublet", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith("sublet ")
