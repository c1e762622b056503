"""A gateway from the command line: its first operator, signing in by mail, and who is kept out."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.client import Client
from sublet.kernel.errors import NotSignedIn
from tests.nursery import typed
from tests.serving import Serving
from tests.smtp import Mailbox, running_smtp

SUBLET = [sys.executable, "-m", "sublet.cli"]
SETTINGS = """\
mode = "gateway"

[signing]
allow = ["*@example.edu"]

[platforms.trial]
kind = "memory"
gpus = 2

[images]
python = "docker://ghcr.io/sublet/python"

"""
PATIENCE = 60.0
BOSS, ANNA, EVE = "boss@example.org", "anna@example.edu", "eve@example.net"


class Someone:
    """Someone at a terminal, with a home of their own."""

    def __init__(self, home: Path, mailbox: Mailbox) -> None:
        self.home, self.mailbox = home, mailbox
        self.environment = {**os.environ, "SUBLET_HOME": str(home)}
        for name in ("SUBLET_URL", "SUBLET_TOKEN"):
            self.environment.pop(name, None)

    def types(self, *words: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return typed(words, {**self.environment, **more}, stdin=stdin, timeout=PATIENCE)

    def signs_in(self, url: str, address: str) -> str:
        """As a person does: type the address, read the mail, type the code."""
        number = len(self.mailbox.to(address)) + 1
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen([*SUBLET, "login", url], env=self.environment, **pipes) as process:  # type: ignore[call-overload]
            process.stdin.write(f"{address}\n")
            process.stdin.flush()
            said, errors = process.communicate(f"{self.mailbox.code(address, number)}\n", timeout=PATIENCE)
        assert process.returncode == 0, errors
        return said


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with running_smtp() as box:
        yield box


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> Iterator[tuple[Serving, str]]:
    """A gateway whose first operator was made before it ran; and its address."""
    home = tmp_path_factory.mktemp("gateway")
    (home / "sublet.toml").write_text(SETTINGS + mailbox.toml)
    made = Someone(home, mailbox).types("person", "add", BOSS, "--role", "operator")
    assert (made.returncode, made.stdout) == (0, f"{BOSS} is known now, as an operator.\n"), made.stderr
    serving = Serving(home, "--port", "0")
    serving.start()
    try:
        yield serving, json.loads((home / "run" / "service.json").read_text())["url"]
    finally:
        serving.stop()


@pytest.fixture
def someone(tmp_path: Path, mailbox: Mailbox) -> Someone:
    return Someone(tmp_path / "home", mailbox)


def test_the_first_operator_needs_a_gateway(someone: Someone) -> None:
    said = someone.types("person", "add", BOSS, "--role", "operator")
    assert said.returncode == 1
    assert 'mode = "gateway"' in said.stderr


def test_a_person_signs_in_is_known_and_signs_out(gateway: tuple[Serving, str], someone: Someone) -> None:
    serving, url = gateway
    assert someone.signs_in(url, ANNA) == f"You are signed in to {url} as {ANNA}.\n"
    directory = someone.home / "gateways"
    assert stat.S_IMODE(directory.stat().st_mode) == stat.S_IMODE(someone.home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}
    (kept,) = directory.glob("*.token")
    secret = kept.read_text().strip()
    who = json.loads(someone.types("whoami", "--json").stdout)
    assert (who["person"], who["service"], who["role"]) == (ANNA, url, "person")
    assert someone.types("whoami").stdout == f"person   {ANNA}\nservice  {url} (gateway)\nrole     person\n"
    assert someone.types("platform", "list", "--quiet").stdout == ""
    listed = "NAME   STATE\ntrial  not open to you: sublet access ask trial --reason TEXT\n"
    assert someone.types("platform", "list").stdout == listed
    assert someone.types("person", "list").stderr.startswith("error: Only an operator can do this.")
    assert secret not in serving.log()
    done = someone.types("logout")
    assert (done.returncode, done.stdout) == (0, f"You are signed out of {url}.\n")
    assert list(directory.iterdir()) == []
    with pytest.raises(NotSignedIn, match="token"):
        Client(url, secret).whoami()
    again = someone.types("logout")
    assert (again.returncode, again.stderr.splitlines()[0]) == (4, "error: You are signed in to no gateway.")


def test_an_operator_blocks_someone_who_is_out_at_once(
    gateway: tuple[Serving, str], tmp_path: Path, mailbox: Mailbox
) -> None:
    _, url = gateway
    boss, anna = Someone(tmp_path / "boss", mailbox), Someone(tmp_path / "anna", mailbox)
    boss.signs_in(url, BOSS)
    anna.signs_in(url, ANNA)
    assert ANNA in boss.types("person", "list", "--quiet").stdout.split()
    assert boss.types("person", "role", ANNA, "reviewer").stdout == f"{ANNA} is a reviewer now.\n"
    assert boss.types("group", "add", "hydro", "--note", "who model rivers").returncode == 0
    assert boss.types("group", "join", "hydro", ANNA, "ben@example.edu").stdout == "hydro has 2 members now.\n"
    assert boss.types("person", "identity", ANNA, "system:expanse", "anna7").returncode == 0
    who = json.loads(anna.types("whoami", "--json").stdout)
    assert (who["role"], who["groups"], len(who["identities"])) == ("reviewer", ["hydro"], 2)
    assert boss.types("person", "block", ANNA, "--reason", "on leave").returncode == 0
    kept_out = anna.types("whoami")
    assert kept_out.returncode == 1
    assert kept_out.stderr == (
        f"error: An operator has blocked {ANNA}; signing in again does not help.\n\n"
        f"hint: Ask an operator to unblock you: {BOSS}.\n"
    )
    assert anna.types("run", "--", "true").stderr == kept_out.stderr
    assert "on leave" in boss.types("person", "show", ANNA).stdout
    assert boss.types("person", "unblock", ANNA).returncode == 0
    assert anna.types("whoami", "--quiet").stdout == f"{ANNA}\n"
    assert boss.types("group", "leave", "hydro", ANNA).returncode == 0
    assert boss.types("group", "show", "hydro", "--quiet").stdout == "ben@example.edu\n"
    assert boss.types("group", "remove", "hydro").returncode == 0
    assert boss.types("person", "remove", ANNA).returncode == 0
    assert anna.types("whoami").returncode == 4
    own = anna.types("whoami", SUBLET_URL=f"unix:{tmp_path}/nothing.sock")
    assert own.returncode == 3


def test_an_app_is_checked_by_what_the_gateway_has_and_nothing_of_it_is_sent(
    gateway: tuple[Serving, str], someone: Someone, tmp_path: Path
) -> None:
    _, url = gateway
    code = tmp_path / "flood"
    code.mkdir()
    gpus = {"gpus_per_node": {"min": 1, "max": 2, "default_value": 1, "step": 1}}
    said = {"name": "flood", "container": "python", "execution_stage": "python main.py", "slurm_input_rules": gpus}
    (code / "manifest.json").write_text(json.dumps(said))
    (code / "main.py").write_text("import requests\nrequests.get('https://example.org')\n")
    before = someone.types("app", "check", str(code)).stdout
    assert before.splitlines()[-1].startswith("flood can be run where there is the internet, GPUs: execution")
    assert "127.0.0.1" not in before

    someone.signs_in(url, BOSS)
    *lines, last = someone.types("app", "check", str(code)).stdout.splitlines()
    assert lines[0] == "needs an image: it names python (manifest.json)"
    assert lines[1] == "  127.0.0.1: yes, as docker://ghcr.io/sublet/python"
    assert "(requests.get, main.py:2)" in lines[2]
    assert lines[3].startswith("  127.0.0.1: not known, whether the nodes of trial")
    assert lines[5] == "  127.0.0.1: yes, on trial (at most 2 in a node)"
    assert last.startswith("flood can be run at 127.0.0.1, if it has the internet: execution")

    memory = {"memory": {"min": 999, "max": 9999, "default_value": 999, "step": 1, "unit": "GB"}}
    (code / "manifest.json").write_text(json.dumps(said | {"slurm_input_rules": memory}))
    *lines, last = someone.types("app", "check", str(code)).stdout.splitlines()
    assert lines[2] == "needs a larger node: one with 1 core and 999GiB of memory (manifest.json)"
    assert lines[3].startswith("  127.0.0.1: no, the largest node of trial has ")
    assert last.startswith("flood can't be run at 127.0.0.1, which lacks a larger node: execution")

    (code / "manifest.json").write_text(json.dumps(said | {"container": "mpich"}))
    (code / "main.py").write_text("from mpi4py import MPI\n")
    told = json.loads(someone.types("app", "check", str(code), "--json").stdout)
    assert [(need["kind"], need["had"]) for need in told["needs"]] == [("image", False), ("mpi", False), ("gpu", True)]
    last = someone.types("app", "check", str(code)).stdout.splitlines()[-1]
    assert last.startswith("flood can't be run at 127.0.0.1, which lacks an image, MPI: execution")
    away = someone.types("app", "check", str(code), SUBLET_URL="http://127.0.0.1:9")
    assert (away.returncode, away.stdout.splitlines()[-1].startswith("flood can be run where there is MPI")) == (
        0,
        True,
    )
    assert "What 127.0.0.1 has is not told: " in away.stderr


def test_a_wrong_code_and_a_stranger_get_nowhere(
    gateway: tuple[Serving, str], someone: Someone, mailbox: Mailbox
) -> None:
    _, url = gateway
    for address in (ANNA, EVE):
        said = someone.types("login", url, "--address", address, stdin="0000 0000\n")
        assert (said.returncode, said.stdout) == (4, "")
        assert "error: This code is wrong" in said.stderr
    assert mailbox.to(EVE) == []
    assert not (someone.home / "gateways").exists()
    far = someone.types("login", "http://gateway.example.org")
    assert (far.returncode, "unprotected" in far.stderr) == (1, True)


def test_who_types_nothing_is_told_what_was_asked_and_what_to_do(
    gateway: tuple[Serving, str], someone: Someone
) -> None:
    _, url = gateway
    nothing = 'error: There was no answer to the question "{}": standard input has ended.\n\nhint: {}'
    for words, stdin, asked, hint in (
        (("login", url), "", "E-mail address", "Give it with --address."),
        (("login", url), f"{ANNA}\n", "Code", "Nobody is signed in."),
        (("login", url, "--address", ANNA), "\n", "Code", "Nobody is signed in."),
    ):
        said = someone.types(*words, stdin=stdin)
        assert (said.returncode, said.stdout) == (2, "")
        assert nothing.format(asked, hint) in said.stderr
    empty = someone.types("login", url, "--token")
    assert (empty.returncode, empty.stderr.splitlines()[0]) == (2, "error: There is no token on standard input.")


def test_a_token_is_taken_from_standard_input(gateway: tuple[Serving, str], someone: Someone) -> None:
    serving, url = gateway
    secret = Someone(serving.home, someone.mailbox).types("token", "--person", ANNA, "--quiet").stdout
    assert someone.types("login", url, "--token", stdin="sublet_wrong\n").returncode == 4
    assert someone.types("login", url, "--token", "--quiet", stdin=secret).stdout == f"{ANNA}\n"
    assert someone.types("whoami", "--quiet").stdout == f"{ANNA}\n"
    assert someone.types("logout", url).returncode == 0


def test_the_client_in_python_signs_in_too(gateway: tuple[Serving, str], mailbox: Mailbox) -> None:
    _, url = gateway
    client, number = Client(url), len(mailbox.to(BOSS)) + 1
    client.ask_code(BOSS)
    assert client.sign_in(BOSS, mailbox.code(BOSS, number), "a notebook").person == BOSS
    assert BOSS in [one.name for one in client.people("operator")]
    client.sign_out()
    with pytest.raises(NotSignedIn):
        next(client.people())
