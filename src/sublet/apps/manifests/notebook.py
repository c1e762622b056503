"""A notebook that is run as an app: its language, the parameters in its cell, and its stage."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sublet.apps.manifests.lines import Path
from sublet.apps.manifests.page import ManifestPage
from sublet.apps.manifests.simple import parameter
from sublet.apps.model.manifest import EXECUTION, AppStage, Manifest, Parameter
from sublet.apps.model.parameters import MOST, is_variable
from sublet.booking.model.amounts import quote_value

SUFFIX = ".ipynb"
MOST_BYTES = 8 << 20
LONGEST_CELL = 100_000  # characters of the parameters cell
PYTHON = "python"
KERNEL = "python3"  # Jupyter's name for its own Python, whatever the author's kernel is called
SIMPLE = (bool, int, float, str, list)
TAG = "parameters"  # of the cell whose values papermill replaces
EXECUTED = "executed.ipynb"  # in the result folder
RUN = 'exec sh "${0%/*}/notebook"'  # the script that executes it is beside the stage


@dataclass(frozen=True)
class Notebook:
    """What is known of a notebook before it is executed."""

    path: str
    language: str
    cell: str | None  # the text of the cell tagged `parameters`, if there is one

    @property
    def stage(self) -> AppStage:
        """The stage that executes it: its path, the kernel if Sublet chooses it, and whether papermill is needed."""
        words = (self.path, KERNEL if self.language == PYTHON else "", TAG if self.cell is not None else "")
        return AppStage(EXECUTION, script=f"{RUN} {shlex.join(words)}\n")


def read(page: ManifestPage, path: str, content: bytes, at: Path = ()) -> Notebook | None:
    """Read a notebook; return None and note what is wrong if it isn't one."""
    if len(content) > MOST_BYTES:
        page.error(at, f"{path} is larger than {MOST_BYTES >> 20} MiB; clear its outputs.")
        return None
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    cells = document.get("cells") if isinstance(document, Mapping) else None
    if not isinstance(cells, list) or document is None or document.get("nbformat") != 4:
        page.error(at, f"{path} is not a notebook of format 4; open it in Jupyter and save it.")
        return None
    cells_read = [cell for cell in cells if isinstance(cell, Mapping)]
    if any(cell.get("outputs") for cell in cells_read):
        page.warn(at, f"{path} has outputs of an earlier run; clear them, so that a reviewer reads all of the code.")
    book = Notebook(path, _language(document), next((_text(cell) for cell in cells_read if TAG in _tags(cell)), None))
    if book.language != PYTHON and book.cell is not None:
        page.warn(at, f"{path} is not in Python: it has to read its parameters in params.json.")
        return replace(book, cell=None)
    return book


def _language(document: Mapping[str, Any]) -> str:
    about = _map(document.get("metadata"))
    named = _map(about.get("kernelspec")).get("language") or _map(about.get("language_info")).get("name") or PYTHON
    return str(named).lower()


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tags(cell: Mapping[str, Any]) -> list[Any]:
    tags = _map(cell.get("metadata")).get("tags")
    return tags if isinstance(tags, list) and cell.get("cell_type") == "code" else []


def _text(cell: Mapping[str, Any]) -> str:
    source = cell.get("source")
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def parameters(page: ManifestPage, cell: str) -> tuple[tuple[Parameter, ...], bool]:
    """Read a cell's assignments as parameters with defaults; return also whether there can be others."""
    try:
        body = ast.parse(cell).body if len(cell) <= LONGEST_CELL else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (), True
    values: dict[str, Any] = {}
    others = False
    for name, value in _read_assignment(body):
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            others = True
    plain = {name: value for name, value in values.items() if _is_plain(value)}
    made = tuple(parameter(page, name, value) for name, value in list(plain.items())[:MOST])
    return made, others or not made or len(plain) < len(values)


def _read_assignment(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for line in body:
        if isinstance(line, ast.Assign | ast.AnnAssign) and line.value is not None:
            for target in line.targets if isinstance(line, ast.Assign) else [line.target]:
                if isinstance(target, ast.Name):
                    yield target.id, line.value


def _is_plain(value: Any) -> bool:
    """Whether it can be a parameter's value, and is the same in JSON."""
    try:
        return isinstance(value, SIMPLE) and bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False


def executing(page: ManifestPage, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    """Complete a manifest that names a notebook: with its stage, and the cell's parameters if it has none."""
    path, at = manifest.notebook, ("notebook",)
    if path not in files:
        page.error(at, f"the notebook {quote_value(path)} is not among the app's files.")
        return manifest
    notebook = read(page, path, files[path], at)
    if notebook is None:
        return manifest
    stages = tuple(notebook.stage if stage.name == EXECUTION else stage for stage in manifest.stages)
    changed = replace(manifest, stages=stages, results=manifest.results or (EXECUTED,))
    if notebook.cell is not None and "parameters" not in page.value:
        named, others = parameters(page, notebook.cell)
        return replace(changed, parameters=named, any_parameters=others)
    check_names(page, ("parameters",), changed)
    return changed


def check_names(page: ManifestPage, at: Path, manifest: Manifest) -> None:
    """Note parameters that can't be variables of a notebook."""
    for each in manifest.parameters:
        if not is_variable(each.name):
            page.error(
                (*at, each.name), f"{quote_value(each.name)} can't be a variable, as a notebook's parameters are."
            )
