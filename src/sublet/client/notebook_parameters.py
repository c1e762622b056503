"""Checks that a local notebook has the parameters that a request sets, before anything is booked."""

from __future__ import annotations

import ast
import difflib
import json
import os
from collections.abc import Mapping
from typing import Any

from sublet.kernel.errors import BadRequest

TAG = "parameters"  # the tag of the cell whose values are replaced
LARGEST = 32 << 20  # bytes; larger notebooks aren't checked


def check_parameters(document: Mapping[str, Any]) -> None:
    """Raise BadRequest for a parameter that the notebook's cell of parameters doesn't define.

    A notebook without such a cell, or whose cell can't be parsed, accepts any parameter.
    """
    path, given = document.get("notebook"), document.get("parameters")
    if not isinstance(path, str) or not isinstance(given, Mapping) or not os.path.isabs(path):
        return
    known = find_names(path)
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


def find_names(path: str) -> set[str] | None:
    """Return the names that a notebook's cell of parameters assigns; None without such a cell that can be parsed."""
    try:
        if os.path.getsize(path) > LARGEST:
            return None
        with open(path, "rb") as file:
            cells = json.load(file)["cells"]
        tagged = [cell for cell in cells if TAG in cell.get("metadata", {}).get("tags", ())]
        if not tagged:
            return None
        body = ast.parse("".join(tagged[0]["source"])).body
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError):
        return None
    names = (node for line in body for node in ast.walk(line) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}
