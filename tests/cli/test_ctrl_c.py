"""Ctrl-C at each moment: nothing is lost without a word, and what has ended is told as it ended."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.cli.interrupts import Interrupts
from tests.cli.test_end_to_end import PATIENCE, Person, Terminal

ASKS = "cancel it (c), or detach"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    someone = Person(tmp_path_factory.mktemp("home") / "sublet", tmp_path_factory.mktemp("cwd"))
    yield someone
    for session in someone.types("ps", "--quiet").stdout.split():
        someone.types("cancel", session)
    someone.types("down")


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Person]:
    """Someone whose service has never been started."""
    someone = Person(tmp_path / "home", tmp_path)
    yield someone
    someone.types("down")


def wait_for_service_of(command: subprocess.Popen[bytes]) -> None:
    """Until a command has started the service that it waits for."""
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    deadline = time.monotonic() + PATIENCE
    while not children.read_text():
        assert command.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_command_that_is_stopped_as_it_loads_ends_quietly() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "sublet.cli", "ps", "--help"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stderr
        for line in command.stderr:
            if line.rsplit(b"|", 1)[-1].strip() == b"typing":  # click needs it, and the commands need click
                break
        command.send_signal(signal.SIGINT)
        said, complaint = command.communicate(timeout=PATIENCE)
    assert (command.returncode, said) == (130, b"")
    assert b"KeyboardInterrupt" not in complaint


def test_a_command_in_the_background_goes_on() -> None:
    words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-X", "importtime", "-m", "sublet.cli"]
    with subprocess.Popen([*words, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stderr
        assert command.stderr.readline()
        command.send_signal(signal.SIGINT)
        said, _ = command.communicate(timeout=PATIENCE)
    assert (command.returncode, said.startswith(b"sublet ")) == (0, True)


def test_who_comes_after_one_who_did_not_wait_for_the_first_start_waits_for_that_service(newcomer: Person) -> None:
    first = newcomer.begins("ps", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_service_of(first)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE)
    assert first.returncode == 130
    second = newcomer.types("ps", "--quiet")
    assert (second.returncode, second.stdout) == (0, ""), second.stderr
    assert (newcomer.home / "logs" / "service.log").read_text().count("service.listening") == 1


def test_a_service_that_is_overtaken_as_it_starts_is_started_again_if_the_other_ends(newcomer: Person) -> None:
    begun = newcomer.begins("up", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_service_of(begun)
    with (newcomer.home / "run" / "sublet.sock.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as one that another command started has it
        assert begun.stderr
        for line in begun.stderr:
            if line.startswith(b"waiting for a service of yours that is ending, or beginning ("):
                break
    said, complaint = begun.communicate(timeout=PATIENCE)
    assert (begun.returncode, b"service is up" in said) == (0, True), complaint


def test_ctrl_c_right_after_the_accept_asks_too(person: Person) -> None:
    with Terminal(person, "run", "--time", "5m", "--", "sleep", "300") as terminal:
        terminal.reads_until("starts now")
        terminal.types("\x03")
        terminal.reads_until(ASKS)
        terminal.types("d\n")
        terminal.reads_until("goes on; its time ends")
        terminal.reads_until("Stop it with: sublet cancel")
        assert terminal.ends() == 130
    running = person.types("ps", "--quiet").stdout.split()
    assert len(running) == 1
    assert person.types("cancel", *running).returncode == 0


@pytest.mark.parametrize("code", [0, 7])
def test_the_question_ends_with_the_session_and_its_results_are_fetched(person: Person, code: int) -> None:
    gate = person.directory / f"gate{code}"
    program = f"echo begun; until [ -e {gate} ]; do sleep 0.1; done; echo left > left.txt; exit {code}"
    with Terminal(person, "run", "--time", "5m", "--out", f"out{code}", "--", "sh", "-c", program) as terminal:
        terminal.reads_until("begun")
        terminal.types("\x03")
        terminal.reads_until(ASKS)
        gate.touch()
        terminal.reads_until("has ended meanwhile")
        terminal.reads_until("fetched 1 file")
        assert terminal.ends() == code
    assert (person.directory / f"out{code}" / "left.txt").read_text() == "left\n"


def test_an_answer_that_is_none_is_asked_for_again(person: Person) -> None:
    with Terminal(person, "run", "--time", "5m", "--", "sh", "-c", "echo begun; sleep 300") as terminal:
        terminal.reads_until("begun")
        terminal.types("\x03")
        terminal.reads_until(ASKS)
        terminal.types("what?\n")
        terminal.reads_until("Type c or d.")
        terminal.reads_until(ASKS)
        terminal.types("\n")
        terminal.reads_until("is cancelled")
        assert terminal.ends() == 130


def test_ctrl_c_that_is_held_back_is_heeded_when_it_is_let_go() -> None:
    with Interrupts() as interrupts:
        interrupts.hold()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.release()
        os.kill(os.getpid(), signal.SIGINT)  # while the first is being heeded
        with pytest.raises(KeyboardInterrupt):
            interrupts.release()
        interrupts.release()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_ctrl_c_is_not_held_back() -> None:
    with Interrupts() as interrupts:
        interrupts.hold()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        interrupts.release()
