"""Packs a program that travels with the job into one file that any Python runs."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

PROGRAM = ".sublet/program.pyz"
MADE = (2020, 1, 1, 0, 0, 0)  # constant, so that the same program always gives the same bytes


@cache
def pack(program: str, *parts: str) -> bytes:
    """Pack `kinds.inside.PROGRAM` as the main module, with the modules (paths in the package) that it imports."""
    package = files("sublet")
    own = f"kinds/inside/{program}.py"
    brought = {f"sublet/{path}": package.joinpath(path).read_bytes() for path in (own, *parts)}
    packages = {f"{folder}/__init__.py": b"" for path in brought for folder in PurePosixPath(path).parents[:-1]}
    start = f"import sys\nfrom sublet.kinds.inside.{program} import main\nsys.exit(main())\n"
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in {"__main__.py": start.encode(), **dict(sorted((packages | brought).items()))}.items():
            archive.writestr(zipfile.ZipInfo(name, MADE), content)
    return target.getvalue()
