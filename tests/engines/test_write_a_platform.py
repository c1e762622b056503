"""The package that the guide has its reader write is installed, is found by its entry point, and keeps the contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guides import Written, parts

pytestmark = pytest.mark.engines
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "write-a-platform.md"
CHECK = """
import asyncio, json, sys
from pathlib import Path
from sublet.platforms.conformance import check_platform
from sublet.platforms.registry import load_platforms

async def check(place):
    quick = dict.fromkeys(("poll", "look", "patience"), "0s")
    settings = {"here": {"kind": "plain", "directory": f"{place}/far", "calls": 1000, **quick}}
    platforms, broken = load_platforms(settings)
    assert not broken, broken
    (home := Path(place) / "home" / "platforms" / "here").mkdir(parents=True)
    await platforms["here"].open(home)
    try:
        return await check_platform(platforms["here"])
    finally:
        await platforms["here"].close()

findings = asyncio.run(check(sys.argv[1]))
print(json.dumps([[finding.rule, finding.ok, finding.detail] for finding in findings]))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Where the package is installed, by the installer that a reader would use."""
    source, target = tmp_path / "source", tmp_path / "installed"
    files = [part for part in parts(GUIDE.read_text()) if isinstance(part, Written)]
    assert len(files) == 7
    for file in files:
        (source / file.name).parent.mkdir(parents=True, exist_ok=True)
        (source / file.name).write_text(file.text)
    uv = Path(sys.executable).with_name("uv")
    words = [uv, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", target, source]
    done = subprocess.run([*words, "--python", sys.executable], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return target


def test_the_example_of_the_guide_keeps_the_contract_of_every_platform(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    words = [sys.executable, "-c", CHECK, str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr
    findings = json.loads(done.stdout)
    assert len(findings) >= 14
    assert [(rule, detail) for rule, ok, detail in findings if not ok] == []
