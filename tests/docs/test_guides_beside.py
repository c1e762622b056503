"""Guides that are typed on a machine beside a cluster, which has HTCondor."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.guides import run_guide
from tests.sites import Site

pytestmark = pytest.mark.engines
ROOT = Path(__file__).parents[2]


class Beside:
    """A reader's directory on the machine `ap` beside a site."""

    def __init__(self, site: Site, mount: str = "") -> None:
        """With a program that answers ssh as the reader would."""
        self.site, self.mount = site, mount
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
        owner = self.directory.parent.stat().st_uid
        for path in (self.directory, *self.directory.iterdir()):
            os.chown(path, owner, owner)

    def shell(self, command: str) -> list[str]:
        """The words that type a command there."""
        values = {
            "SUBLET_HOME": "/home/researcher/guide-home",
            "SUBLET_POLL": "1s",
            "SITE": self.site.facts["host_from_ap"],
            "MOUNT": self.mount,
            "SSH_ASKPASS": "/home/researcher/guide/answers",
            "SSH_ASKPASS_REQUIRE": "force",
            "COLUMNS": "100",
            "TZ": "UTC",
        }
        there = f"cd /home/researcher/guide\n{command}"
        given = [f"{name}={value}" for name, value in values.items()]
        return self.site.entering("researcher@ap", "env", *given, "bash", "-c", there)

    def leaves(self) -> None:
        """Stop what was started there."""
        for words in ("annex shutdown example", "annex setup --stop", "system logout cluster", "down"):
            subprocess.run(self.shell(f"sublet {words}"), capture_output=True, timeout=120)


def differences_beside(beside: Beside, guide: str) -> list[str]:
    """Type a guide there."""
    try:
        systems = beside.directory.parent / "guide-home" / "systems"
        return run_guide(ROOT / "docs" / "guides" / f"{guide}.md", beside.directory, {}, beside.shell, systems)
    finally:
        beside.leaves()


@pytest.mark.parametrize("guide", ["annex"])
def test_the_guide_to_annexes_shows_what_its_commands_say(guide: str, ap_site: Site) -> None:
    differences = differences_beside(Beside(ap_site), guide)
    assert not differences, "\n\n".join(differences)


@pytest.mark.parametrize(
    ("option", "mount", "seen"),
    [
        pytest.param((), "", "over the login", marks=pytest.mark.soak, id="split,over the login"),
        pytest.param(("--ap-mounts",), "--mount /home=/site/home", "here", id="split,mounted"),
    ],
)
def test_a_guide_to_nodes_that_reach_nothing(
    option: tuple[str, ...], mount: str, seen: str, new_site: Callable[..., Site]
) -> None:
    """The commands show the same on both roads; that over the login is gone in tests/real/test_split_annex.py too."""
    site = new_site("--base", "box", "--ap", "--nodes", "4", *option)
    assert "default" not in site.on("c1", "ip", "route")
    beside = Beside(site, mount)
    differences = differences_beside(beside, "split")
    log = (beside.directory.parent / "guide-home" / "logs" / "service.log").read_text()
    assert not differences, "\n\n".join(differences)
    assert {seen in line for line in log.splitlines() if "split.started" in line} == {True}
    assert site.on("login", "find", "/home/researcher", "-path", "*/sessions/*").split() == []
