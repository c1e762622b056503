"""Notebooks as they are sent to kernels: their language, their parameters, and the code that runs first."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PYTHON = "python"
INJECTED = "injected-parameters"
FAILS = "raises-exception"  # the tag of a cell that may raise


class NotANotebook(Exception):
    """It can't be executed; the words say why."""


@dataclass(frozen=True)
class Cell:
    """A cell with code."""

    index: int  # among all cells of the notebook
    source: str
    may_raise: bool = False


def read_notebook(text: bytes) -> dict[str, Any]:
    """Read a notebook of nbformat 4; raise NotANotebook if it can't be executed."""
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotANotebook(f"it is no JSON: {error}") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise NotANotebook("it says no nbformat")
    if notebook["nbformat"] != 4 or not isinstance(notebook.get("cells"), list):
        raise NotANotebook(f"its nbformat is {notebook['nbformat']}; open it in Jupyter and save it, which makes it 4")
    if not all(isinstance(cell, dict) and "cell_type" in cell for cell in notebook["cells"]):
        raise NotANotebook("not all of its cells are cells")
    return notebook


def find_language(notebook: Mapping[str, Any], kernels: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the kernel that a notebook wants, and its language.

    `kernels` are those that there are, with their languages, which count more than what the notebook says: many
    notebooks name a kernel alone, some call Python `ipython` or `python3`, and hand-made ones name nothing.
    """
    about = _read_object(notebook.get("metadata"))
    kernel, info = _read_object(about.get("kernelspec")), _read_object(about.get("language_info"))
    name = str(kernel.get("name", ""))
    return name, str(kernels.get(name) or kernel.get("language") or info.get("name") or PYTHON).lower()


def _read_object(value: object) -> Mapping[str, Any]:
    """Return an object of a notebook; an empty one if something else stands there."""
    return value if isinstance(value, dict) else {}


def list_cells(notebook: Mapping[str, Any]) -> list[Cell]:
    """Return the cells with code, in order."""
    return [
        Cell(index, source, FAILS in _tags(cell))
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and (source := _source(cell)).strip()
    ]


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source") or ""
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _tags(cell: Mapping[str, Any]) -> Sequence[str]:
    tags = _read_object(cell.get("metadata")).get("tags")
    return tags if isinstance(tags, list) else []


def inject(notebook: dict[str, Any], parameters: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Add a cell that sets the parameters, where papermill puts it: after the cell with their defaults."""
    cells = [cell for cell in notebook["cells"] if INJECTED not in _tags(cell)]
    if parameters:
        defaults = [number for number, cell in enumerate(cells) if "parameters" in _tags(cell)]
        cell: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {"tags": [INJECTED]},
            "outputs": [],
            "source": write_parameters(parameters, language),
        }
        minor = notebook.get("nbformat_minor")
        if isinstance(minor, int) and minor >= 5:
            cell["id"] = INJECTED
        cells.insert(defaults[0] + 1 if defaults else 0, cell)
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return {**notebook, "cells": cells}


def write(notebook: Mapping[str, Any]) -> bytes:
    """Write a notebook as a file."""
    return json.dumps(notebook, indent=1).encode()


def write_parameters(parameters: Mapping[str, Any], language: str) -> str:
    """Write the parameters as code."""
    if language not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise NotANotebook(f"parameters can't be given to a notebook in {language}, only to one in {known}")
    comment, write = WRITERS[language]
    sign = SIGNS.get(language, " = ")
    return "\n".join([comment, *(f"{name}{sign}{write(value)}" for name, value in parameters.items())])


def _write_python(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_write_python(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write_python, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def _write_text(value: Any) -> str:
    """Write text as JSON does, but characters as they are: R and Julia know no pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False)


def _write_number(value: float) -> str:
    """Write a number as R and Julia do."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return json.dumps(value)


def _write_r(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"list({', '.join(f'{_write_text(str(name))} = {_write_r(item)}' for name, item in value.items())})"
    if isinstance(value, list):
        return f"list({', '.join(map(_write_r, value))})"
    words: dict[Any, str] = {None: "NULL", True: "TRUE", False: "FALSE"}
    if value is None or isinstance(value, bool):
        return words[value]
    return _write_text(value) if isinstance(value, str) else _write_number(value)


def _write_julia(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            f"Dict({', '.join(f'{_write_julia(str(name))} => {_write_julia(item)}' for name, item in value.items())})"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_write_julia, value))}]"
    if value is None:
        return "nothing"
    return _write_text(value).replace("$", "\\$") if isinstance(value, str) else _write_number(value)


def _write_bash(value: Any) -> str:
    """Write a value as bash does: a list is an array, and a map is text in JSON."""
    if isinstance(value, list):
        return f"({' '.join(_write_bash(json.dumps(item) if isinstance(item, list) else item) for item in value)})"
    if value is None or isinstance(value, str):
        return shlex.quote(value or "")
    return shlex.quote(json.dumps(value, ensure_ascii=False))


SIGNS = {"r": " <- ", "bash": "="}  # between a name and its value; else an equals sign with a space on each side
WRITERS: dict[str, tuple[str, Callable[[Any], str]]] = {
    PYTHON: ("# Parameters", _write_python),
    "r": ("# Parameters", _write_r),
    "julia": ("# Parameters", _write_julia),
    "bash": ("# Parameters", _write_bash),
}

# Run before the first cell, hidden, in a namespace of its own: sets the session's variables and installs requirements.
PREPARE = """exec({code!r}, {{"plan": {plan!r}}})"""
PREPARING = """
import json, os, subprocess, sys
plan = json.loads(plan)
if os.path.basename(os.getcwd()) != "work":
    raise RuntimeError("the kernel does not see the files of its server: it runs in " + os.getcwd())
here = os.path.dirname(os.getcwd())
os.makedirs(os.path.join(here, "tmp"), exist_ok=True)
os.makedirs(os.path.join(here, "data"), exist_ok=True)
own = {"SUBLET_DATA": "data", "SUBLET_WARNING": "warning", "TMPDIR": "tmp"}
os.environ.update({name: os.path.join(here, path) for name, path in own.items()})
os.environ.update(plan["environment"])
for target, source in plan["links"]:
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    os.makedirs(os.path.join(here, os.path.dirname(source)), exist_ok=True)
    if not os.path.lexists(target):
        os.symlink(os.path.join(here, source), target)
if plan["requirements"]:
    place = os.path.join(here, "packages")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", place]
    done = subprocess.run([*words, *plan["requirements"]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("the requirements could not be installed: " + (done.stderr or done.stdout).strip()[-1000:])
    sys.path.insert(0, place)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH"))))
"""
ENVIRONMENTS: dict[str, Callable[[str, str], str]] = {  # in other languages: how a variable is set
    "r": lambda name, value: f"Sys.setenv({name} = {_write_r(value)})",
    "bash": lambda name, value: f"export {name}={_write_bash(value)}",
    "julia": lambda name, value: f"ENV[{_write_julia(name)}] = {_write_julia(value)}",
}
REMOVE = """exec({code!r}, {{"folder": {folder!r}, "key": {key!r}}})"""
REMOVING = """
import os, shutil
here = os.getcwd()
if os.path.basename(here) == key and os.path.basename(os.path.dirname(here)) == folder:
    os.chdir("/")
    shutil.rmtree(here, ignore_errors=True)
    if not os.listdir(os.path.dirname(here)):
        os.rmdir(os.path.dirname(here))
"""


def write_preparation(
    language: str, environment: Mapping[str, str], requirements: Sequence[str], links: Sequence[Sequence[str]] = ()
) -> str:
    """Write the code that a kernel runs first; empty if there is none for this language."""
    if language == PYTHON:
        plan = {"environment": dict(environment), "requirements": list(requirements), "links": [*links]}
        return PREPARE.format(code=PREPARING, plan=json.dumps(plan))
    if requirements:
        raise NotANotebook(f"requirements can only be installed for a notebook in Python, and it is in {language}")
    write = ENVIRONMENTS.get(language)
    return "\n".join(write(name, value) for name, value in environment.items()) if write else ""


def write_removal(directory: str) -> str:
    """Write the code by which a kernel removes the session's directory that it runs in, and no other."""
    folder, _, name = directory.rpartition("/")
    return REMOVE.format(code=REMOVING, folder=folder, key=name)
