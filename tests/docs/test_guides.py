"""Guides can't lie: every command in them is typed, and must show what the guide shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.people import AP_USERS

from tests.docs.guides import matches, parts, run_guide
from tests.sites import COMMAND, Site

ROOT = Path(__file__).parents[2]
ON_A_SITE = {"slurm"}  # guides that need a cluster
AT_AP = {"annex"}  # guides that are typed on a machine beside a cluster, which has HTCondor
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


def at_a_site(site: Site, directory: Path) -> dict[str, str]:
    """Where the cluster is, and a program that answers ssh as the reader would."""
    answers = directory / "answers"
    answers.write_text(
        "#!/bin/sh\n"
        "case $1 in\n"
        "*yes/no*) echo yes ;;\n"
        f"*assword*) echo '{site.facts['password']}' ;;\n"
        f"*) exec {sys.executable} {ROOT}/testbed/site code {site.name} ;;\n"
        "esac\n"
    )
    answers.chmod(0o700)
    often = {"SUBLET_POLL": "1s"}  # a reader has more time than a test
    return {"SITE": site.host, "SSH_ASKPASS": str(answers), "SSH_ASKPASS_REQUIRE": "force", **often}


class Beside:
    """A reader's directory on the machine `ap` beside a site."""

    def __init__(self, site: Site) -> None:
        """With a program that answers ssh as the reader would."""
        self.site = site
        self.directory = Path(site.facts["ap_home"]) / "researcher" / "guide"
        self.directory.mkdir()
        (self.directory / "people.py").write_text((ROOT / "testbed" / "people.py").read_text())
        answers = self.directory / "answers"
        answers.write_text(
            "#!/bin/sh\n"
            "cd /home/researcher/guide\n"
            "case $1 in\n"
            "*yes/no*) echo yes ;;\n"
            f"*assword*) echo '{site.facts['password']}' ;;\n"
            "*) exec python3 -c 'import people; print(people.code())' ;;\n"
            "esac\n"
        )
        answers.chmod(0o755)
        for path in (self.directory, *self.directory.iterdir()):
            shutil.chown(path, AP_USERS["researcher"], AP_USERS["researcher"])

    def shell(self, command: str) -> list[str]:
        """The words that type a command there."""
        values = {
            "SUBLET_HOME": "/home/researcher/guide-home",
            "SUBLET_POLL": "1s",
            "SITE": self.site.facts["host_from_ap"],
            "SSH_ASKPASS": "/home/researcher/guide/answers",
            "SSH_ASKPASS_REQUIRE": "force",
            "COLUMNS": "100",
            "TZ": "UTC",
        }
        there = f"cd /home/researcher/guide\n{command}"
        given = [f"{name}={value}" for name, value in values.items()]
        return [*COMMAND, "exec", self.site.name, "researcher@ap", "env", *given, "bash", "-c", there]

    def leaves(self) -> None:
        """Stop what was started there."""
        for words in ("annex shutdown example", "annex setup --stop", "system logout cluster", "down"):
            subprocess.run(self.shell(f"sublet {words}"), capture_output=True, timeout=120)


@pytest.mark.parametrize("guide", sorted(AT_AP))
def test_a_guide_beside_a_site_shows_what_its_commands_say(guide: str, ap_site: Site) -> None:
    beside = Beside(ap_site)
    try:
        differences = run_guide(ROOT / "docs" / "guides" / f"{guide}.md", beside.directory, {}, beside.shell)
    finally:
        beside.leaves()
    assert not differences, "\n\n".join(differences)


@pytest.mark.parametrize("guide", [guide for guide in GUIDES if guide.stem not in AT_AP], ids=lambda guide: guide.stem)
def test_a_guide_shows_what_its_commands_say(guide: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
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
    if guide.stem in ON_A_SITE:
        environment |= at_a_site(request.getfixturevalue("site"), tmp_path)
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
