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
CLASSES = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:\n(.*?)(?=^\S)", re.MULTILINE | re.DOTALL)
METHODS = re.compile(r"^    (?:async )?def ([a-z]\w*)\(", re.MULTILINE)
CALLED = re.compile(r"\b(\w+)(?:\([^()\n]*\))?\.(?=(\w+))")
ANNOTATED = re.compile(r"\b(\w+): (?=([\w.\[\] |]+))")
MADE = re.compile(r"\b(\w+) = (\w+)\(")
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
    assert unused == []


def read_classes(texts: list[str]) -> dict[str, tuple[list[str], str]]:
    """The bases and the body of each class."""
    return {name: (re.findall(r"\w+", bases), body) for text in texts for name, bases, body in CLASSES.findall(text)}


def find_holders(texts: list[str]) -> dict[str, set[str]]:
    """By which names fields, parameters and variables hold an object of each class."""
    holders: dict[str, set[str]] = {}
    for text in texts:
        for name, type_ in [*ANNOTATED.findall(text), *MADE.findall(text)]:
            for each in re.findall(r"\w+", type_):
                holders.setdefault(each, set()).update((name, f"_{name}"))
    return holders


def test_every_method_of_a_store_or_use_case_is_called_by_the_product() -> None:
    """A call counts for the class whose object it is made on, not for each that has a method of that name."""
    texts = [
        f"{file.read_text()}\n#" for file in ROOT.rglob("*.py") if "client" not in file.parts
    ]  # its names are public
    classes, holders = read_classes(texts), find_holders(texts)
    pages = [file.read_text() for file in ROOT.rglob("*.html")]
    calls = {call for text in [*texts, *pages] for call in CALLED.findall(text)}
    promised = {name for bases, body in classes.values() if "Protocol" in bases for name in METHODS.findall(body)}
    owners = [body for name, (_, body) in classes.items() if name in ("Tx", "Service") or name.endswith("Cases")]
    unused: list[str] = []
    for name in sorted(classes.keys() & find_holders(owners).keys()):
        family = [name, *(base for base in classes[name][0] if base in classes)]
        own = "".join(classes[each][1] for each in family)
        receivers = set(family).union(*(holders.get(each, set()) for each in family))
        called = {method for receiver, method in calls if receiver in receivers}
        methods = set(METHODS.findall(own)) - promised - called
        unused += [f"{name}.{method}" for method in sorted(methods) if f"self.{method}" not in own]
    assert unused == []
