"""What goes wrong is told with a hint and an exit code, and never with a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sublet.kernel.container_network import USUAL, choose_networks, look_at_machine
from tests.canned import Said
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")


def test_errors_are_told_with_a_hint_and_their_exit_code(type_in: Type, canned: Serve, tmp_path: Path) -> None:
    canned({"GET /v1/whoami": Said(b"", 401), "POST /v1/tokens": Said({"code": "not-signed-in", "detail": "No."}, 401)})
    refused = type_in("status", "ffff")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "error: There is no /v1/sessions/ffff.\n\nhint: Look elsewhere.\n"
    assert type_in("status").code == 2
    assert type_in("run").code == 2
    assert type_in("run", "python3", "sim.py").code == 2
    assert type_in("ask", "nothing.yaml").code == 2
    assert type_in("token").code == 4


def test_a_service_that_is_not_there_is_exit_code_3(
    type_in: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SUBLET_URL", f"unix://{tmp_path}/nothing.sock")
    typed = type_in("ps")
    assert (typed.code, typed.out) == (3, "")
    assert typed.err.startswith("error: No Sublet service answers at ")
    assert "\n\nhint: " in typed.err


def test_an_answer_that_is_not_a_services_is_exit_code_3(type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/sessions": Said({"items": "nonsense"})})
    typed = type_in("ps")
    assert (typed.code, typed.out) == (3, "")
    assert typed.err.startswith("error: This version of Sublet doesn't understand the answer: ")
    assert "\n\nhint: Check the address" in typed.err


def test_the_unexpected_is_told_without_a_traceback(
    type_in: Type, canned: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(**filters: object) -> None:
        raise RuntimeError("a defect")

    (tmp_path / "sublet.toml").write_text('[logs]\nfile = "/var/log/sublet/mine.log"\n')
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path))

    canned({})
    monkeypatch.setattr("sublet.booking.calls.sessions.sessions", fail)
    typed = type_in("ps")
    assert (typed.code, typed.out) == (1, "")
    assert typed.err.startswith("error: something unexpected happened: ")
    assert "Traceback" not in typed.err
    assert "The service's log is /var/log/sublet/mine.log;" in " ".join(typed.err.split())


def test_the_doctor_finds_what_is_bad(type_in: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)  # whatever the umask is
    (home / "sublet.toml").write_text("hold = \n")
    typed = type_in("doctor", "-q")
    assert typed.code == 1
    assert "bad settings: " in typed.out
    assert "warn SUBLET_HOME: others can look into " in typed.out
    (home / "sublet.toml").unlink()
    home.chmod(0o700)
    good = json.loads(type_in("doctor", "--json").out)
    assert {"state": "ok", "what": "database", "detail": "made at the first start", "todo": ""} in good


def test_the_doctor_says_which_network_containers_get_and_why(
    type_in: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "podman").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (expected, *_) = choose_networks("podman", USUAL, False, look_at_machine())
    found = [one for one in json.loads(type_in("doctor", "--json").out) if one["what"] == "their network"]
    state = "warn" if expected.is_none else "ok"
    assert found == [{"state": state, "what": "their network", "detail": expected.words, "todo": expected.remedy}]


def test_the_doctor_says_what_is_missing_of_htcondor(
    type_in: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("sbin/condor_master", "bin/condor_submit", "bin/condor_q"):
        file = tmp_path / "half" / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/half/sbin", prepend=os.pathsep)
    found = [one for one in json.loads(type_in("doctor", "--json").out) if one["what"] == "HTCondor"]
    todo = "Install all of its package, or for annexes: sublet annex setup --fetch"
    detail = f"{tmp_path}/half, without condor_status, condor_history"
    assert found == [{"state": "warn", "what": "HTCondor", "detail": detail, "todo": todo}]


def test_whoever_reads_no_further_or_not_at_all_is_no_failure(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sublet.cli", "system", "list"]
    read, write = os.pipe()
    os.close(read)
    shut = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (shut.returncode, shut.stderr) == (0, "")
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        told = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    why = "error: Nothing more can be written: No space left on device."
    assert (told.returncode, told.stderr.splitlines()) == (1, [why, "", "hint: Free some space, and try again."])


def test_a_question_where_nobody_sits_is_told_with_what_to_do(canned: Serve, type_in: Type) -> None:
    canned({})
    typed = type_in("person", "totp", "off")
    assert (typed.code, typed.out) == (2, "")
    assert 'There was no answer to the question "Code"' in typed.err
    assert "--code" in typed.err
