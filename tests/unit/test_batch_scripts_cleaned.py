"""Directories are made although whoever cleans up after a last session removes what is empty, just then."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sublet.platforms.batch.scripts import script

ONCE = """#!/bin/sh
/bin/mkdir "$@" || exit
[ -e cleaned ] || { : >cleaned; rm -rf root; }
"""


@pytest.mark.parametrize(
    ("name", "words", "made"),
    [
        ("root", ("root",), "root/sessions"),
        ("incoming", ("root", "key", "me"), "root/incoming/key/owner"),
        ("keep", ("root", "name", "key", "me"), "root/kept/name/users/key"),
    ],
)
def test_what_goes_as_it_is_made_is_made_again(tmp_path: Path, name: str, words: tuple[str, ...], made: str) -> None:
    mkdir = tmp_path / "bin" / "mkdir"
    mkdir.parent.mkdir()
    mkdir.write_text(ONCE)
    mkdir.chmod(0o755)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{mkdir.parent}:{os.environ['PATH']}"}
    done = subprocess.run(script(name, *words), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "cleaned").exists()) == (0, True), done.stderr
    assert (tmp_path / made).exists()
