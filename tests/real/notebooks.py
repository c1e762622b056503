"""A notebook, and what a site needs to run one: papermill in an environment, as a site's operator makes it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.sites import Site

NEEDED = ("papermill", "ipykernel", "nbconvert")
PLACE = "/scratch/software/jupyter"  # shared by all machines of a site


def notebook(*cells: str) -> dict[str, Any]:
    """A notebook in Python; its first cell has the parameters."""
    made = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "source": text,
            "metadata": {"tags": [] if number else ["parameters"]},
            "outputs": [],
            "execution_count": None,
        }
        for number, text in enumerate(cells)
    ]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": made}


def write_notebook(path: Path, *cells: str) -> Path:
    """A notebook in a file."""
    path.write_text(json.dumps(notebook(*cells)))
    return path


def offer_papermill(site: Site) -> str:
    """Install papermill on a site, out of what is installed here; the directory that it is in."""
    environment = install(site, PLACE, NEEDED)
    program = environment / "bin" / "papermill"
    program.write_text(f"#!{PLACE}/bin/python3\nfrom papermill.__main__ import papermill\npapermill()\n")
    program.chmod(0o755)
    return f"{PLACE}/bin"


def install(site: Site, place: str, needed: tuple[str, ...]) -> Path:
    """Copy what is installed here into an environment of a site's, below /scratch; the directory as it is seen here."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if site.on("login", "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip() != version:
        pytest.skip(f"the site's Python is not the {version} that is here")
    site.on("login", "python3", "-m", "venv", "--without-pip", place)
    environment = Path(site.facts["scratch"]) / place.removeprefix("/scratch/")
    packages = environment / f"lib/python{version}/site-packages"
    for part in closure(needed):
        for file in part.files or ():
            source, target = Path(str(file.locate())), Path(os.path.normpath(packages / file))
            if source.is_file() and target.is_relative_to(environment):
                _copy(source, target)
                if source.suffix == ".py" and (compiled := Path(cache_from_source(str(source)))).exists():
                    _copy(compiled, target.parent / "__pycache__" / compiled.name)
    return environment


def _copy(source: Path, target: Path) -> None:
    """With its time, by which Python knows that what is compiled is not old."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def bring_papermill(site: Site, *nodes: str) -> None:
    """Install papermill on nodes of a site whose Python is another than ours, from PyPI, where that can be reached."""
    uv = Path(sys.executable).parent / "uv"
    version = site.on("login", "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    site.on("login", "python3", "-m", "venv", "--without-pip", PLACE)
    place = Path(site.facts["scratch"]) / f"software/jupyter/lib/python{version}/site-packages"
    words = [uv, "pip", "install", "--quiet", "--python-version", version, "--only-binary", ":all:", "--target", place]
    if subprocess.run([*words, *NEEDED], capture_output=True).returncode:
        return
    program = f"#!{PLACE}/bin/python3\nfrom papermill.__main__ import papermill\npapermill()\n"
    for node in nodes:
        site.on(node, "sh", "-c", 'printf %s "$1" >"$2" && chmod 755 "$2"', "sh", program, "/usr/local/bin/papermill")


def closure(needed: tuple[str, ...]) -> list[Distribution]:
    """What is needed, and what that needs in turn."""
    found: dict[tuple[str, str], Distribution] = {}
    todo = [(name, "") for name in needed]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in found:
            continue
        try:
            found[name, extra] = distribution(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed here")
        for wanted in map(Requirement, found[name, extra].requires or ()):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                todo += [(wanted.name.lower(), more) for more in ("", *wanted.extras)]
    return list(found.values())
