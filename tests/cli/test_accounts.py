"""`sublet account` and `sublet usage`: what is typed, what is asked, and what is never shown."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.access.model.account import fingerprint
from tests.cli.conftest import Type
from tests.serving import Serving
from tests.sshd import Sshd, needs_sshd, sshd

HPC = {
    "ip": "127.0.0.1",
    "is_community_account": True,
    "community_login": {"user": "cigi", "external_key": {"private_key_path": "cigi.key", "passphrase": "sesame"}},
    "root_path": "community",
    "init_sbatch_script": ["module load apptainer", "ulimit -s unlimited"],
}


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """A service in a process of its own; its home is the one that commands use."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(f'master_key = "{tmp_path / "master"}"\n[platforms.trial]\nkind = "memory"\n')
    started = Serving(home)
    started.start()
    yield started
    started.stop()


@needs_sshd
def test_from_a_master_key_to_an_imported_account_and_away_again(
    type_in: Type, serving: Serving, tmp_path: Path
) -> None:
    made = type_in("account", "key", str(tmp_path / "master"))
    assert "keep a copy" in made.err
    assert type_in("account", "key", str(tmp_path / "home" / "master")).code == 2
    assert re.search(rf"ok +master key +{tmp_path / 'master'}", type_in("doctor").out)
    (tmp_path / "master").chmod(0o644)
    assert re.search(r"bad +master key .* chmod 600", type_in("doctor").out)
    (tmp_path / "master").chmod(0o600)
    place = tmp_path / "cybergis"
    place.mkdir()
    key = place / "cigi.key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "sesame", "-f", key], check=True)
    with sshd(tmp_path / "sshd") as server:
        file = place / "hpc.json"
        file.write_text(json.dumps({"Keeling": {**HPC, "port": server.port}}))
        known = fingerprint((server.directory / "host_key.pub").read_text())
        _check_import(type_in, file, server, known)
    rekeyed = type_in("account", "key", "--more", str(tmp_path / "master"))
    assert "sublet account rekey" in rekeyed.err
    assert "1 of account" in type_in("account", "rekey").out
    shown = type_in("account", "show", "keeling").out
    assert "cigi@127.0.0.1" in shown
    assert known in shown
    assert json.loads(type_in("account", "list", "--json").out)["items"][0]["modules"] == ["apptainer"]
    changed = type_in("account", "change", "keeling", "--capacity", "3", "--description", "for all")
    assert changed.out == "keeling is changed.\n"
    assert "0 of 3" in type_in("account", "list").out
    assert type_in("account", "check", "keeling").code == 1  # the host is gone
    assert "removed" in type_in("account", "remove", "keeling").out
    assert type_in("account", "list").out == ""
    assert "Nothing ran" in type_in("usage").err
    assert type_in("usage", "--csv").out.startswith("quarter,platform,person")


def _check_import(type_in: Type, file: Path, server: Sshd, known: str) -> None:
    trial = type_in("account", "import", str(file), "--dry-run")
    assert trial.code == 0
    assert re.search(r"refused +init_sbatch_script +`ulimit -s unlimited`", trial.out)
    assert "sesame" not in trial.out + trial.err
    refused = type_in("account", "import", str(file), "--fingerprint", known)
    assert refused.code == 2
    assert "--leave-out init_sbatch_script" in refused.err
    words = ("account", "import", str(file), "--leave-out", "init_sbatch_script")
    nobody = type_in(*words)
    assert nobody.code == 1
    assert known in nobody.err  # it is shown, and nobody sits there to confirm it
    assert "has not been confirmed" in nobody.err
    other = type_in(*words, "--fingerprint", "SHA256:" + "x" * 43)
    assert "Someone may be in between" in other.err
    file.with_name("more.json").write_text(
        json.dumps({**json.loads(file.read_text()), "own": {**HPC, "is_community_account": False}})
    )
    done = type_in(*words[:2], str(file.with_name("more.json")), *words[3:], "--fingerprint", known)
    assert (done.code, "1 of 2 accounts are added" in done.err) == (1, True), done.err
    assert "a person's own account" in done.err
    assert "is needed here no longer" in done.err
    assert "take it out" in done.err


@needs_sshd
def test_a_key_with_a_passphrase_comes_by_a_pipe_and_the_passphrase_by_a_program(
    type_in: Type, serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in("account", "key", str(tmp_path / "master"))
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "sesame", "-f", key], check=True)
    line = f"h.example.org {key.with_suffix('.pub').read_text()}"
    words = ("account", "add", "h", "--host", "h.example.org", "--user", "u", "--key", "-", "--host-key", line)
    refused = type_in(*words, stdin=key.read_text())
    assert (refused.code, "it has a passphrase" in refused.err) == (2, True)
    askpass = tmp_path / "askpass"
    askpass.write_text("#!/bin/sh\necho sesame\n")
    askpass.chmod(0o700)
    monkeypatch.setenv("SSH_ASKPASS", str(askpass))
    done = type_in(*words, stdin=key.read_text())
    assert done.out.startswith("h is added; its key is SHA256:")
    unknown = type_in(*words[:-1], f"other.example.org {key.with_suffix('.pub').read_text()}", stdin=key.read_text())
    assert "There is no key of h.example.org" in unknown.err
