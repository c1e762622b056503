"""`sublet serve --print-unit`: a unit that systemd takes as it is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.nursery import typed


def print_unit(home: Path, *options: str) -> str:
    done = typed(["serve", "--print-unit", *options], {"SUBLET_HOME": str(home), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_unit_serves_as_it_was_asked_and_lets_sessions_live(tmp_path: Path) -> None:
    home, config = tmp_path / "a home with 50% room", tmp_path / "the settings.toml"
    config.write_text("")
    unit = print_unit(home, "--gateway", "--port", "8080", "--config", str(config))
    assert f'Environment="SUBLET_HOME={tmp_path}/a home with 50%% room"' in unit
    assert f'sublet serve --port 8080 --config "{config}" --gateway\n' in unit
    assert {"KillMode=process", "ExecReload=/bin/kill -HUP $MAINPID"} <= set(unit.splitlines())
    assert not home.exists(), "printing changes nothing"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here: the unit was not verified")
    (tmp_path / "sublet.service").write_text(unit)
    said = subprocess.run(["systemd-analyze", "verify", tmp_path / "sublet.service"], capture_output=True, text=True)
    assert (said.returncode, said.stdout + said.stderr) == (0, "")


def test_a_password_is_not_printed_into_a_unit(tmp_path: Path) -> None:
    url = "postgresql://sublet:s3cret@db/sublet"
    done = typed(["serve", "--print-unit", "--database", url], {"SUBLET_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert "s3cret" not in done.stderr
    assert "sublet.toml" in done.stderr
