"""Guides can't lie: every command in them is typed, and must show what the guide shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guides import matches, parts, run_guide

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_shows_what_its_commands_say(guide: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    bin_directory = Path(sys.executable).parent
    environment = {
        "SUBLET_HOME": str(tmp_path / "home"),
        "HOME": str(here),
        "PATH": f"{bin_directory}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "COLUMNS": "100",
        "TZ": "UTC",
    }
    try:
        differences = run_guide(guide, here, environment)
    finally:
        subprocess.run([str(bin_directory / "sublet"), "down"], env=environment, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)


def test_there_are_guides_and_each_has_commands() -> None:
    assert GUIDES
    assert all(parts(guide.read_text()) for guide in GUIDES)


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        (["a … c"], "a b c\n", True),
        (["a", "…", "d"], "a\nb\nc\nd\n", True),
        (["a", "…", "d"], "a\nd\n", True),
        (["a"], "a\nb\n", False),
        ([], "unexpected\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_all_else_for_itself(shown: list[str], said: str, same: bool) -> None:
    assert matches(shown, said) is same
