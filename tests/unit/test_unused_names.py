"""What a module defines for itself or for others is used by somebody."""

from __future__ import annotations

import re
from pathlib import Path

import sublet

ROOT = Path(sublet.__file__).parent
REPOSITORY = Path(__file__).parents[2]
OURS = ("tests", "benchmarks", "testbed", "scripts")  # what these alone use stays: faults are for tests
IMPORTED = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
ATTRIBUTES = re.compile(r"\.([A-Za-z]\w*)")
NAMES = re.compile(r"^(?:(?:async )?def |class )(\w+)|^([A-Za-z_]\w*)(?:: [^=\n]+)? = ", re.MULTILINE)
IS_READ_BY_ALEMBIC = {"revision", "down_revision"}


def list_imported(text: str) -> set[tuple[str, str]]:
    """Which names a module takes from which others, the last part of whose name is enough to tell."""
    return {
        (module.rpartition(".")[2], name)
        for module, names in IMPORTED.findall(text)
        for name in re.findall(r"\w+", names)
    }


def test_every_name_is_used() -> None:
    texts = {file: file.read_text() for file in ROOT.rglob("*.py")}
    others = [file.read_text() for folder in OURS for file in (REPOSITORY / folder).rglob("*.py")]
    everything = [*texts.values(), *others]
    imported = set[tuple[str, str]]().union(*map(list_imported, everything))
    attributes = set[str]().union(*map(ATTRIBUTES.findall, everything))
    declared = (REPOSITORY / "pyproject.toml").read_text()
    unused = []
    for file, text in sorted(texts.items()):
        module = file.parent.name if file.stem == "__init__" else file.stem
        for found in NAMES.finditer(text):
            name = found[1] or found[2]
            is_decorated = text[: found.start()].rpartition("\n\n")[2].startswith("@")
            is_known = name.startswith("__") or name in IS_READ_BY_ALEMBIC or f":{name}" in declared
            if is_decorated or is_known or (module, name) in imported or name in attributes:
                continue
            if len(re.findall(rf"\b{name}\b", text)) == 1:
                unused.append(f"{file.relative_to(ROOT)}: {name}")
    assert not unused
