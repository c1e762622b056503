"""The guide to a federation: two real Slurm sites with a broker each, an aggregator above them, a real provider."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.docs.guides import run_guide
from tests.openid import openid
from tests.ports import free_port
from tests.real.images import oci_archive
from tests.registries import registry
from tests.sites import Site

pytestmark = [pytest.mark.engines, pytest.mark.slurm]
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "federation.md"
BIN = Path(sys.executable).parent
# What a reader does by hand: agrees in a browser, and looks at where the offers are.
PROGRAMS = {
    "agree": f"""\
#!/bin/sh
PYTHONPATH={ROOT} exec {sys.executable} -m tests.agree "$1"
""",
    "offered": f"""\
#!{sys.executable}
import json, sys
terms = [offer["terms"] for offer in json.load(sys.stdin)["offers"]]
print(*sorted({{each["route"] + " " + each["inner"] for each in terms}}), sep="\\n")
""",
}


def describe(name: str, site: Site) -> dict[str, str]:
    """What the guide calls the facts of a site."""
    facts = {"HOST": site.host, "KEY": str(site.key), "KNOWN": site.facts["known_hosts"], "NAME": site.name}
    return {f"{name}_{fact}": value for fact, value in {**facts, "PORT": str(free_port())}.items()}


def write_programs(folder: Path) -> None:
    """What the guide speaks of beside Sublet."""
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def end_services(homes: Sequence[Path], environment: dict[str, str]) -> None:
    """End what the guide started, if it did not come that far itself."""
    for home in homes:
        own = {**environment, "SUBLET_HOME": str(home)}
        subprocess.run([str(BIN / "sublet"), "down"], env=own, capture_output=True, timeout=60)


@pytest.mark.parametrize("guide", ["federation"])
def test_the_guide_to_a_federation_shows_what_its_commands_say(
    guide: str, tmp_path: Path, new_site: Callable[..., Site]
) -> None:
    here, programs, kept = tmp_path / "here", tmp_path / "bin", tmp_path / "exported"
    here.mkdir()
    write_programs(programs)
    oci_archive(tmp_path / "image.tar", Entrypoint=None)

    def shell(command: str) -> list[str]:
        """Remember what a command exported."""
        return ["bash", "-c", f'[ -f "{kept}" ] && . "{kept}"\n{command}\ndeclare -p SUBLET_HOME >"{kept}"']

    with openid(tmp_path / "iam") as iam, registry() as images:
        digest = images.push("geo/box", "1", tmp_path / "image.tar")
        environment = {
            "SUBLET_HOME": str(tmp_path / "home"),
            "HOME": str(here),
            "PWD": str(here),
            "PATH": f"{programs}:{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "COLUMNS": "140",
            "TZ": "UTC",
            "SUBLET_ANSWER_WITHIN": "30s",
            "IAM": iam.issuer,
            "IMAGE": f"{images.address}/geo/box:1@{digest}",
            "PORT": str(free_port()),
            **describe("CAM", new_site("--base", "box")),
            **describe("MAN", new_site("--base", "box")),
        }
        try:
            differences = run_guide(GUIDE, here, environment, shell)
        finally:
            end_services([here / name for name in ("above", "cam", "man")], environment)
    assert not differences, "\n\n".join(differences)
