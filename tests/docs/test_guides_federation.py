"""The guide to a federation, on two real Slurm sites with a broker each, and an aggregator above them."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.guides import run_guide
from tests.sites import Site

pytestmark = [pytest.mark.engines, pytest.mark.slurm]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "federation.md"


def describe(name: str, site: Site) -> dict[str, str]:
    """What the guide calls the facts of a site."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    facts = {"HOST": site.host, "KEY": str(site.key), "KNOWN": site.facts["known_hosts"], "NAME": site.name}
    return {f"{name}_{fact}": value for fact, value in {**facts, "PORT": port}.items()}


@pytest.mark.parametrize("guide", ["federation"])
def test_the_guide_to_a_federation_shows_what_its_commands_say(
    guide: str, tmp_path: Path, new_site: Callable[..., Site]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    bin_directory = Path(sys.executable).parent
    environment = {
        "SUBLET_HOME": str(tmp_path / "home"),
        "HOME": str(here),
        "PATH": f"{bin_directory}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "COLUMNS": "140",
        "TZ": "UTC",
        "SUBLET_ANSWER_WITHIN": "30s",
        **describe("CAM", new_site()),
        **describe("MAN", new_site()),
    }
    try:
        differences = run_guide(GUIDE, here, environment)
    finally:
        for home in (tmp_path / "home", here / "cam", here / "man"):
            words = [str(bin_directory / "sublet"), "down"]
            subprocess.run(words, env={**environment, "SUBLET_HOME": str(home)}, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)
