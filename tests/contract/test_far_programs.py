"""The programs that travel to a system to fill its cache, as a Python there runs them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.resources import files as resources
from pathlib import Path

from sublet.platforms.batch.fetching import FAR, read_program
from sublet.platforms.batch.kept import read_image_program

NEWER = {"removeprefix", "removesuffix", "is_relative_to", "file_digest", "waitstatus_to_exitcode", "hardlink_to"}


def test_a_fetch_that_cannot_begin_gives_up_its_claim(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    (tmp_path / "plan").write_text(json.dumps({"folder": False, "total": 0, "rate": 0}))
    words = [sys.executable, "-I", "-", str(tmp_path), "plan"]
    done = subprocess.run(words, input=read_program(), capture_output=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(b"IsADirectoryError")
    assert not (tmp_path / "claim").exists()


def test_what_travels_is_understood_by_an_old_python() -> None:
    images = [read_image_program(name) for name in ("archive_reader", "image_unpacker")]
    sender, unpacker = read_program("sources.py", "sender.py"), resources(FAR).joinpath("unpacker.py").read_bytes()
    for program in (read_program(), sender, unpacker, *images):
        parsed = ast.walk(ast.parse(program, feature_version=(3, 8)))
        assert not NEWER & {node.attr for node in parsed if isinstance(node, ast.Attribute)}
