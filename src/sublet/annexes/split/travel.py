"""Joins modules into one text for machines with an older Python: without annotations, in one namespace."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

AGENT = ("spool_files", "frames", "agent")
FAR_HALF = (
    "spool_files",
    "far_programs",
    "far_ads",
    "far_kept",
    "far_results",
    "far_starting",
    "far_attempts",
    "far_half",
)
OLDEST = (3, 6)  # the python3 of the oldest systems still in use


class _Plain(ast.NodeTransformer):
    """Removes annotations, and imports of modules in the same text."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        for star in (node.args.vararg, node.args.kwarg):
            if star:
                star.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        module = node.module or ""
        return None if module == "__future__" or module.startswith("sublet.") else node


@cache
def text_of(*modules: str) -> str:
    """Return these modules of this package as one text; the last one's `main(settings)` is the entry point."""
    parts = []
    for name in modules:
        tree = ast.parse(files("sublet.annexes.split").joinpath(f"{name}.py").read_text())
        parts.append(ast.unparse(ast.fix_missing_locations(_Plain().visit(tree))))
    return "\n\n".join(parts)


def program(modules: tuple[str, ...], settings: Mapping[str, Any]) -> bytes:
    """Return the text with its settings as data, ready to run."""
    values = json.dumps(json.dumps(dict(settings)))
    return f"{text_of(*modules)}\n\nmain(json.loads({values}))\n".encode()
