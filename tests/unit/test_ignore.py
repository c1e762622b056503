"""The patterns of an ignore file mean what they mean to git."""

import subprocess
from pathlib import Path

import pytest

from sublet.kernel.folders import walk
from sublet.kernel.ignore import CLUTTER, SECRETS, Ignore

PATHS = (
    "a.log",
    "b/a.log",
    "b/c/a.log",
    "b/keep.log",
    "build/x",
    "b/build/x",
    "doc/a.txt",
    "doc/d/b.txt",
    "x1",
    "xa",
    "#h",
)


@pytest.mark.parametrize(
    "lines",
    [
        ["*.log"],
        ["*.log", "!keep.log"],
        ["/a.log"],
        ["b/*.log"],
        ["build/"],
        ["/build/"],
        ["doc/*.txt"],
        ["doc/**"],
        ["**/c/"],
        ["b/**/a.log"],
        ["x[0-9]", "!x?"],
        ["x[!0-9]"],
        ["\\#h", "# a comment", ""],
        ["*", "!*/", "!*.txt"],
    ],
)
def test_a_folder_is_walked_as_git_would(tmp_path: Path, lines: list[str]) -> None:
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    ours = {entry.path for entry in walk(str(tmp_path), Ignore(lines)) if not entry.is_folder}
    (tmp_path / ".gitignore").write_text("\n".join([*lines, "/.gitignore"]) + "\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    asked = ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"]
    theirs = subprocess.run(asked, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert ours == {path for path in theirs.split("\0") if path}


def test_clutter_and_secrets_stay_behind_and_can_be_taken_back() -> None:
    usual = Ignore([*CLUTTER, *SECRETS, "!public.pem"])
    for folder in (".git", "a/__pycache__", ".venv", "web/node_modules", ".ssh"):
        assert usual.skips(folder, is_folder=True), folder
    for file in ("a/b.pyc", ".env", ".env.local", "key.pem", "id_ed25519", "id_rsa.pub"):
        assert usual.skips(file, is_folder=False), file
    for file in ("sim.py", "keys.csv", "public.pem", "environment.yml"):
        assert not usual.skips(file, is_folder=False), file
