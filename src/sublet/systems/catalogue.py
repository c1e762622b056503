"""The catalogue of well-known systems: one file each, beside this one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sublet.kernel.errors import BadRequest, BadSystem, NotFound
from sublet.systems.fields import BadField, Path
from sublet.systems.model.system import System
from sublet.systems.reader import read_system

DIRECTORY = os.path.dirname(__file__)
SUFFIX = ".yaml"


def names(directory: str = DIRECTORY) -> list[str]:
    """List the systems that have a file in a directory, sorted."""
    try:
        return sorted(file.removesuffix(SUFFIX) for file in os.listdir(directory) if file.endswith(SUFFIX))
    except FileNotFoundError:
        return []


def find_in_catalogue(name: str) -> System:
    """Return a system of the catalogue; raise NotFound if there is none of this name."""
    if name not in names():
        raise NotFound(
            noun="system", name=name, hint=f"`sublet system list` shows the systems.{nearest(name, names())}"
        )
    file = os.path.join(DIRECTORY, name + SUFFIX)
    try:
        return read_system(name, document_of(name, file))
    except BadField as wrong:
        raise blame_line(wrong, name, file) from None


def document_of(name: str, file: str) -> Mapping[str, Any]:
    """Read a system's file into plain values."""
    from sublet.kernel.document import parse_document  # YAML is slow to load, and listing names doesn't need it

    try:
        with open(file, "rb") as opened:
            return parse_document(opened.read())
    except OSError as error:
        raise BadSystem(name=name, where=file, detail=error.strerror or str(error)) from error
    except BadRequest as error:
        raise BadSystem(name=name, where=file, detail=str(error.values.get("detail", error.message))) from error


def blame_line(wrong: BadField, name: str, file: str) -> BadSystem:
    """Return the error that names the file, the line and the field."""
    line = line_of(file, wrong.path)
    where = f"{file}, line {line}" if line else file
    field = ".".join(str(part) for part in wrong.path)
    return BadSystem(name=name, where=where, detail=f"{field}: {wrong.detail}" if field else wrong.detail)


def line_of(file: str, path: Path) -> int | None:
    """Return the line of a field, or of the nearest parent that the file contains."""
    import yaml

    with open(file, "rb") as opened:
        node = yaml.compose(opened, Loader=yaml.CSafeLoader)
    line = None
    for part in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        listed = node.value if isinstance(node, yaml.SequenceNode) else ()
        if isinstance(part, int) and part < len(listed):
            node, line = listed[part], listed[part].start_mark.line + 1
        elif (pair := next((pair for pair in pairs if pair[0].value == str(part)), None)) is not None:
            node, line = pair[1], pair[0].start_mark.line + 1
        else:
            break
    return line


def nearest(name: str, known: list[str]) -> str:
    """Return a hint that names the most similar system, or an empty string."""
    import difflib  # only needed after a typo

    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]}?" if near else ""
