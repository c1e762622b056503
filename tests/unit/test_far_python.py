"""Which Python of a cluster's login host is used, whatever its name is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sublet.platforms.batch.scripts import read_script, script


def install(folder: Path, **versions: int) -> None:
    """Programs that answer as Python 3.N would; their names are written with `_` for `.`."""
    folder.mkdir()
    for name, minor in versions.items():
        program = folder / name.replace("_", ".")
        program.write_text(f"#!{sys.executable} -IS\nimport sys\nsys.version_info = (3, {minor})\nexec(sys.argv[2])\n")
        program.chmod(0o755)


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ("/bin/sh", *words[1:]), capture_output=True, text=True, env={"PATH": str(folder), "HOME": "/"}, check=False
    )
    assert not done.stderr
    return done.stdout.strip().replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("versions", "for_us", "for_sessions"),
    [
        ({"python3": 12, "python3_14": 14}, "python3", "python3 python3"),
        ({"python3": 6, "python3_8": 8}, "python3.8", ""),
        ({"python3": 6, "python3_8": 8, "python3_9": 9}, "python3.9", "python3 python3.9"),
        ({"python3": 8, "python3_11": 11}, "python3", "python3 python3.11"),
        ({"python3": 6, "python3_13": 13, "python3_14": 14}, "python3.14", "python3 python3.14"),
        ({"python3": 6, "python3_21": 21}, "python3.21", "python3 python3.21"),
        ({"python3": 6, "python3_7": 7}, "", ""),
        ({}, "", ""),
    ],
)
def test_a_python_that_is_new_enough_is_found_by_any_of_its_names(
    tmp_path: Path, versions: dict[str, int], for_us: str, for_sessions: str
) -> None:
    install(tmp_path / "bin", **versions)
    assert run(tmp_path / "bin", "sh", "-c", read_script("python") + 'find_python && echo "$python"') == for_us
    assert run(tmp_path / "bin", *script("tools", "0", "0", "python3")) == for_sessions
