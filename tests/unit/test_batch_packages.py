"""A batch system is a package of its own and one line that names it: nothing else in the source knows of it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import sublet

SOURCE = Path(sublet.__file__).parent
PROJECT = SOURCE.parents[1] / "pyproject.toml"
WORDS = {
    "oar": re.compile(r"\boar(sub|stat|del|nodes|walltime)?\b", re.IGNORECASE),
    "gridengine": re.compile(r"grid[ _-]?engine|\b(qacct|qrsub|qrstat|qrdel|qconf)\b", re.IGNORECASE),
}


def list_texts(package: str) -> list[Path]:
    """Every file of the source outside a package that people wrote."""
    own = SOURCE / "platforms" / package
    files = [file for file in SOURCE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return [
        file
        for file in files
        if not file.is_relative_to(own) and file.suffix in (".py", ".sh", ".html", ".yaml", ".toml")
    ]


@pytest.mark.parametrize("package", WORDS)
def test_nothing_outside_its_package_knows_a_batch_system(package: str) -> None:
    inside = (SOURCE / "platforms" / package / "platform.py").read_text()
    assert WORDS[package].search(inside)
    assert [str(file) for file in list_texts(package) if WORDS[package].search(file.read_text())] == []


@pytest.mark.parametrize("package", WORDS)
def test_one_line_of_the_project_makes_it_a_platform(package: str) -> None:
    project = tomllib.loads(PROJECT.read_text())["project"]
    named = [
        (name, target) for name, target in project["entry-points"]["sublet.platforms"].items() if package in target
    ]
    assert [name for name, _ in named] == [package]
    assert not WORDS[package].search(str({**project, "entry-points": {}}))
