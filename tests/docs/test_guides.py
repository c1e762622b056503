"""Guides can't lie: every command in them is typed, and must show what the guide shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.conftest import guides_in, require_guide
from tests.docs.guides import matches, parts, run_guide
from tests.sites import Site

ROOT = Path(__file__).parents[2]
ON_A_SITE = {"slurm"}  # guides that need a cluster
LONG = {"sweep", "when"}  # guides that take long: `make engines` types them, too
AT_AP = {"annex", "split"}  # guides that are typed on a machine beside a cluster, which has HTCondor
BEHIND_A_PROXY = {"operate", "operate-a-site"}  # guides that need nginx before the service, or a gateway
AT_STORAGE = {"data", "data-on-a-cluster"}  # guides that need an object store and a WebDAV server
ABOVE_SITES = {"federation"}  # guides that need two clusters: `make engines` types them
AT_A_GATEWAY = {"gateway", "contribute-an-app"}  # guides that need a cluster, mail, git and a registry
AT_ENGINES = {"engines", "openstack"}  # guides that need large servers of others
ELSEWHERE = AT_AP | AT_A_GATEWAY | AT_STORAGE | BEHIND_A_PROXY | ABOVE_SITES | AT_ENGINES
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


@pytest.mark.parametrize(
    "guide",
    [
        pytest.param(guide, id=guide.stem, marks=[pytest.mark.engines] if guide.stem in ON_A_SITE | LONG else [])
        for guide in GUIDES
        if guide.stem not in ELSEWHERE
    ],
)
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
    systems = None
    if guide.stem in ON_A_SITE:
        environment |= at_a_site(request.getfixturevalue("site"), tmp_path)
        systems = tmp_path / "home" / "systems"
    try:
        differences = run_guide(guide, here, environment, systems=systems)
    finally:
        subprocess.run([str(bin_directory / "sublet"), "down"], env=environment, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)


def test_there_are_guides_and_each_has_commands() -> None:
    assert GUIDES
    assert all(parts(guide.read_text()) for guide in GUIDES)


def test_each_guide_can_be_run_by_its_name() -> None:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/docs"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120).stdout.splitlines()
    assert {name for test in listed for name in guides_in(test)} >= {guide.stem for guide in GUIDES}


def test_a_guide_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(pytest.UsageError, match=r"There is no guide 'x'. There are: annex, "):
        require_guide("x")


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


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        (["a", "b", "x", "y"], True),
        (["x", "a", "y", "b"], True),
        (["x", "y", "a", "b"], True),
        (["b", "a", "x", "y"], False),  # each stream has an order of its own
        (["a", "b", "x"], False),
        (["…", "y", "b"], True),
        (["a", "…"], True),
        (["a", "…", "x"], False),  # it stands for lines of both, and y comes after x
    ],
)
def test_stdout_and_stderr_come_in_either_order_and_each_in_its_own(shown: list[str], same: bool) -> None:
    assert matches(shown, "a\nb\n", "x\ny\n") is same


def test_a_guide_is_the_same_however_long_its_commands_wait(tmp_path: Path) -> None:
    waits = "import sublet.cli.progress as p; p.FIRST_LINE = 0; p.Progress(wanted=True).show('waiting')"
    guide = tmp_path / "guide.md"
    guide.write_text(f'```console\n$ {sys.executable} -c "{waits}"; echo done >&2; echo 42\n42\ndone\n```\n')
    assert run_guide(guide, tmp_path, {}) == []
