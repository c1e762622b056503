"""The guide to OpenStack, a person's whole way with a real cloud: added, asked, run, and nothing left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.docs.guides import run_guide
from tests.engines.openstack_cloud import Project

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BIN = Path(sys.executable).parent
PATIENCE = 400.0  # seconds for a command: machines are emulated


@pytest.mark.soak
@pytest.mark.parametrize("guide", ["openstack"])
def test_the_guide_to_openstack_shows_what_its_commands_say(guide: str, project: Project, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    environment = {
        "SUBLET_HOME": str(here / "home"),
        "HOME": str(here),
        "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "COLUMNS": "120",
        "TZ": "UTC",
        "SUBLET_POLL": "1s",  # a reader has more time than a test
        "SUBLET_ANSWER_WITHIN": "30s",
        "CLOUDS": str(project.settings()["clouds_file"]),
    }
    try:
        differences = run_guide(GUIDES / f"{guide}.md", here, environment, seconds=PATIENCE)
    finally:
        subprocess.run([str(BIN / "sublet"), "down"], env=environment, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)
    assert anyio.run(project.list_names) == []
