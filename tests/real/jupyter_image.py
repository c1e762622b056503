"""A container image with Python and papermill, out of what is installed here, as an operator's generic one is."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

from tests.real import images
from tests.real.notebooks import closure

PLACE = "/opt/jupyter"
ENV = ["PATH=/usr/local/bin:/bin", f"PYTHONPATH={PLACE}", "LANG=C.UTF-8"]
NEEDED = ("papermill", "ipykernel")
LAB, LAB_PLACE = ("jupyterlab", "nbconvert"), "/opt/lab"
HEAVY = {"jedi", "parso", "debugpy", "tzdata"}  # which nothing here needs
LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data", "__pycache__"}
LEFT_OUT |= {"site-packages", "dist-packages"}
PAPERMILL = b'#!/bin/sh\nexec python3 -m papermill "$@"\n'


def jupyter_archive(path: Path, *, with_lab: bool = False, name: str = "") -> str:
    """As `docker save` writes it, under a name if one is said; returns the image's id."""
    files = dict(_files((*NEEDED, *LAB) if with_lab else NEEDED)) | (dict(_lab_files()) if with_lab else {})
    env = [*ENV, f"JUPYTERLAB_DIR={LAB_PLACE}"] if with_lab else ENV
    return images.docker_archive(path, images.layer(more=files), name, Entrypoint=[], Env=env)


def python_archive(path: Path) -> str:
    """The same with Python alone."""
    return images.docker_archive(path, images.layer(more=dict(_files(()))), Entrypoint=[], Env=ENV)


def _lab_files() -> Iterator[tuple[str, Path | bytes]]:
    """What JupyterLab shows in a browser, and the program."""
    place = Path(sys.prefix) / "share" / "jupyter" / "lab"
    for file in place.rglob("*"):
        if file.is_file() and file.suffix != ".map":
            yield f"{LAB_PLACE}/{file.relative_to(place)}", file
    yield "/usr/local/bin/jupyter-lab", b'#!/bin/sh\nexec python3 -m jupyterlab "$@"\n'


def _files(needed: tuple[str, ...]) -> Iterator[tuple[str, Path | bytes]]:
    """Path in the image → a file here, or what it says."""
    python, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    found = {str(file): file for file in (python, *_modules(library))}
    for part in closure(needed):
        for file in () if part.name in HEAVY else part.files or ():
            source = Path(str(file.locate()))
            if ".." not in file.parts and source.is_file() and not LEFT_OUT & set(file.parts):
                found[f"{PLACE}/{file}"] = source
    yield from _with_compiled(found)
    programs = [file for file in found.values() if ".so" in file.name or file == python]
    yield from ((str(file), file) for file in libraries_of(programs))
    yield "/usr/local/bin/python3", b"#!/bin/sh\nexec " + str(python).encode() + b' "$@"\n'
    yield "/usr/local/bin/papermill", PAPERMILL


def _modules(library: Path) -> Iterator[Path]:
    """The standard library, without what only its own authors and people at a desktop need."""
    for file in library.rglob("*"):
        parts = set(file.relative_to(library).parts)
        if not parts & LEFT_OUT and file.suffix in (".py", ".so") and "_tkinter" not in file.name:
            yield file


def _with_compiled(found: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    for path, file in found.items():
        yield path, file
        if file.suffix == ".py" and (compiled := Path(cache_from_source(str(file)))).exists():
            yield f"{path.rpartition('/')[0]}/__pycache__/{compiled.name}", compiled


def libraries_of(programs: list[Path]) -> Iterator[Path]:
    """The shared libraries that programs need of the system; packages have theirs with them."""
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    words = {word for line in said.splitlines() for word in line.split() if word.startswith("/") and ".so" in word}
    yield from (Path(word) for word in sorted(words) if not word.endswith(":") and "/site-packages/" not in word)
