"""Checks that a local notebook can be given, and has, the parameters that a request sets, before anything is booked."""

from __future__ import annotations

import ast
import difflib
import json
import os
from collections.abc import Mapping
from typing import Any

from sublet.kernel.errors import BadRequest

TAG = "parameters"  # the tag of the cell whose values are replaced
PYTHON = "python"
LANGUAGES = (PYTHON, "r", "julia", "bash", "scala", "matlab", "c#", "f#", "powershell")  # papermill or a kernel can set
LARGEST = 32 << 20  # bytes; larger notebooks aren't checked


def check_parameters(document: Mapping[str, Any]) -> None:
    """Raise BadRequest for parameters of a language that nothing writes, and for one that the notebook doesn't define.

    A notebook without a cell of parameters, or whose cell isn't Python or can't be parsed, accepts any parameter.
    """
    path, given = document.get("notebook"), document.get("parameters")
    if not isinstance(path, str) or not isinstance(given, Mapping) or not os.path.isabs(path):
        return
    notebook = _read(path)
    language = find_language(notebook)
    if given and language and language not in LANGUAGES:
        raise BadRequest(
            f"The notebook {os.path.basename(path)} is in {language}, and parameters can't be given to it.",
            hint=f"They can be given to one in {', '.join(LANGUAGES[:-1])} or {LANGUAGES[-1]}. "
            "Any notebook can read variables that --env sets.",
        )
    known = find_names(notebook) if language in ("", PYTHON) else None
    if known is None:
        return
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1, 0.6)
            there = f"It has {', '.join(sorted(known))}." if known else "Its cell of parameters is empty."
            raise BadRequest(
                f"The notebook {os.path.basename(path)} has no parameter {name}.",
                hint=f"Did you mean {near[0]}? {there}" if near else there,
            )


def _read(path: str) -> Mapping[str, Any]:
    """Read a notebook; empty if it is too large, or can't be read as one."""
    try:
        if os.path.getsize(path) > LARGEST:
            return {}
        with open(path, "rb") as file:
            notebook = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return notebook if isinstance(notebook, dict) else {}


def find_language(notebook: Mapping[str, Any]) -> str:
    """Return a notebook's language in lower case; empty if it states none."""
    try:
        about = notebook["metadata"]
        kernel, info = about.get("kernelspec") or {}, about.get("language_info") or {}
        return str(kernel.get("language") or info.get("name") or "").lower()
    except (KeyError, AttributeError):
        return ""


def find_names(notebook: Mapping[str, Any]) -> set[str] | None:
    """Return the names that a notebook's cell of parameters assigns; None without such a cell that can be parsed."""
    try:
        tagged = [cell for cell in notebook["cells"] if TAG in cell.get("metadata", {}).get("tags", ())]
        if not tagged:
            return None
        body = ast.parse("".join(tagged[0]["source"])).body
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError):
        return None
    names = (node for line in body for node in ast.walk(line) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}
