"""Universes of HTCondor jobs: which of them annexes can run, and which a submit description or a DAG uses."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Reader = Callable[[str], str | None]  # returns a file's text; None if it can't be read
VANILLA, SCHEDULER, LOCAL = 5, 7, 12
NAMES = {
    1: "standard",
    VANILLA: "vanilla",
    SCHEDULER: "scheduler",
    8: "mpi",
    9: "grid",
    10: "java",
    11: "parallel",
    LOCAL: "local",
    13: "vm",
}
ON_NODES = frozenset({"vanilla", "container", "docker"})
AT_THE_POINT = frozenset({NAMES[SCHEDULER], NAMES[LOCAL]})  # beside the queue itself, such as managers of DAGs
INSTEAD = "Leave the line out: a program that starts Java or MPI itself is a job of universe vanilla."

_UNIVERSE = re.compile(r"""^\s*["']?\s*universe\s*=\s*([a-z]+|\d+)""", re.IGNORECASE | re.MULTILINE)
_INCLUDE = re.compile(r"^\s*include(?:\s+ifexist)?\s*:\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_VARIABLE = re.compile(r"""\buniverse\s*=\s*["']\s*([a-z]+|\d+)""", re.IGNORECASE)
_NODES = frozenset({"job", "final", "service", "provisioner"})
_PARTS = frozenset({"splice", "subdag"})
_DEEPEST = 20  # nesting depth of files that include one another


@dataclass(frozen=True, slots=True)
class AskedUniverse:
    """A universe that a description uses, and the DAG node of that description, if any."""

    universe: str
    node: str = ""


def say_no(universe: str) -> str:
    """Return the message that jobs of a universe don't run on an annex."""
    return f"Jobs of universe {universe} don't run on an annex: vanilla, container and docker do."


def name_universe(number: int) -> str:
    """Return HTCondor's name for a universe."""
    return NAMES.get(number, str(number))


def find_universes(text: str, read: Reader, deep: int = 0) -> Iterator[str]:
    """Yield the universes that a submit description uses, also in included files."""
    for word in _UNIVERSE.findall(text):
        yield name_universe(int(word)) if word.isdecimal() else word.lower()
    for file in _INCLUDE.findall(text) if deep < _DEEPEST else ():
        yield from find_universes(read(file) or "", read, deep + 1)


def find_universes_of_dag(text: str, read: Reader, base: str = "", deep: int = 0) -> Iterator[AskedUniverse]:
    """Yield the universes that a DAG's nodes use, also in splices, sub-DAGs and inline descriptions."""
    if deep > _DEEPEST:
        return
    for words, block in _commands(text):
        command, node = words[0].lower(), words[1] if len(words) > 1 else ""
        if block is not None:
            yield from (AskedUniverse(universe, node) for universe in find_universes(block, _below(read, base)))
        elif command == "vars":
            yield from (AskedUniverse(universe.lower(), node) for universe in _VARIABLE.findall(" ".join(words[2:])))
        elif command == "include":
            yield from find_universes_of_dag(read(os.path.join(base, node)) or "", read, base, deep + 1)
        elif command in _NODES | _PARTS:
            yield from _find_in_file(words[1:] if command == "subdag" else words, read, base, deep)


def _find_in_file(words: Sequence[str], read: Reader, base: str, deep: int) -> Iterator[AskedUniverse]:
    """Parse `WORD NODE FILE [DIR PLACE]`, where WORD tells the type of the file."""
    if len(words) < 3:
        return
    upper = [word.upper() for word in words]
    at = upper.index("DIR", 3) + 1 if "DIR" in upper[3:] else len(words)
    place = os.path.join(base, words[at]) if at < len(words) else base
    text = read(os.path.join(place, words[2])) or ""
    if words[0].lower() in _NODES:
        yield from (AskedUniverse(universe, words[1]) for universe in find_universes(text, _below(read, place)))
    else:
        yield from find_universes_of_dag(text, read, place, deep + 1)


def _below(read: Reader, place: str) -> Reader:
    return lambda file: read(os.path.join(place, file))


def _commands(text: str) -> Iterator[tuple[list[str], str | None]]:
    """Yield each command of a DAG as a list of words, with its inline description or None."""
    lines = iter(text.replace("\\\n", " ").splitlines())
    for line in lines:
        words = [word.strip('"') for word in line.split()]
        if not words or words[0].startswith("#"):
            continue
        last = words[-1]
        end = "}" if last == "{" else f"@{last[2:]}" if last.startswith("@=") else ""
        yield words, "\n".join(_until(lines, end)) if end else None


def _until(lines: Iterator[str], end: str) -> Iterator[str]:
    for line in lines:
        if line.strip() == end:
            return
        yield line
