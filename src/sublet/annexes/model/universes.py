"""What annexes can't run, in submit descriptions and DAGs: other universes, and jobs with concurrency limits."""

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
UNIVERSE, LIMITS = "universe", "concurrency_limits"

_BESIDE = "Without the line it runs on the annex; condor_submit runs it as it is, on this machine, beside the queue."
_BY_ITSELF = "Leave the line out: a program that starts Java or MPI itself is a job of universe vanilla."
_INSTEAD = {**dict.fromkeys(("java", "mpi", "parallel"), _BY_ITSELF), **dict.fromkeys(AT_THE_POINT, _BESIDE)}
_OTHERWISE = "Leave the line out if the program needs nothing but its files: it is then a job of universe vanilla."
_WORDS = r"(universe|concurrency_limits(?:_expr)?)"
_LINE = re.compile(rf"""^\s*["']?\s*{_WORDS}[ \t]*=[ \t]*([^\s"'$][^\n"']*)""", re.IGNORECASE | re.MULTILINE)
_INCLUDE = re.compile(r"^\s*include(?:\s+ifexist)?\s*:\s*(\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_VARIABLE = re.compile(rf"""\b{_WORDS}\s*=\s*["']\s*([^\s"'$][^"']*)""", re.IGNORECASE)
_NODES = frozenset({"job", "final", "service", "provisioner"})
_PARTS = frozenset({"splice", "subdag"})
_DEEPEST = 20  # nesting depth of files that include one another


@dataclass(frozen=True, slots=True)
class AskedLine:
    """A line of a description that decides whether annexes can run its jobs, and their DAG node, if any."""

    word: str  # universe or concurrency_limits
    value: str
    node: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether nodes of an annex can run such jobs, or in a DAG the access point."""
        return self.word == UNIVERSE and self.value in (ON_NODES | AT_THE_POINT if self.node else ON_NODES)

    @property
    def problem(self) -> str:
        """The message that such jobs don't run on an annex."""
        return say_no(self.value) if self.word == UNIVERSE else say_no_to_limits(self.value)

    @property
    def remedy(self) -> str:
        """What to do instead."""
        return (
            advise(self.value)
            if self.word == UNIVERSE
            else "Leave the line out. In a DAG, MAXJOBS limits how many nodes of a category run at once."
        )


def say_no(universe: str) -> str:
    """Return the message that jobs of a universe don't run on an annex."""
    return f"Jobs of universe {universe} don't run on an annex: vanilla, container and docker do."


def say_no_to_limits(limits: str) -> str:
    """Return the message that jobs with concurrency limits don't run on an annex."""
    return f"Jobs with concurrency_limits = {limits} don't run on an annex: it has no negotiator, which counts them."


def advise(universe: str) -> str:
    """Return what to do instead of using a universe that annexes can't run."""
    return _INSTEAD.get(universe, _OTHERWISE)


def name_universe(number: int) -> str:
    """Return HTCondor's name for a universe."""
    return NAMES.get(number, str(number))


def find_lines(text: str, read: Reader, node: str = "", deep: int = 0) -> Iterator[AskedLine]:
    """Yield the universes and limits of a submit description, also in included files."""
    yield from (_read_line(word, value, node) for word, value in _LINE.findall(text))
    for file in _INCLUDE.findall(text) if deep < _DEEPEST else ():
        yield from find_lines(read(file) or "", read, node, deep + 1)


def _read_line(word: str, value: str, node: str) -> AskedLine:
    if word.lower() != UNIVERSE:
        return AskedLine(LIMITS, value.strip(), node)
    first = value.split()[0].lower()
    return AskedLine(UNIVERSE, name_universe(int(first)) if first.isdecimal() else first, node)


def find_lines_of_dag(text: str, read: Reader, base: str = "", deep: int = 0) -> Iterator[AskedLine]:
    """Yield the universes and limits of a DAG's nodes, also in splices, sub-DAGs and inline descriptions."""
    if deep > _DEEPEST:
        return
    for words, block in _commands(text):
        command, node = words[0].lower(), words[1] if len(words) > 1 else ""
        if block is not None:
            yield from find_lines(block, _below(read, base), node)
        elif command == "vars":
            yield from (_read_line(word, value, node) for word, value in _VARIABLE.findall(" ".join(words[2:])))
        elif command == "include":
            yield from find_lines_of_dag(read(os.path.join(base, node)) or "", read, base, deep + 1)
        elif command in _NODES | _PARTS:
            yield from _find_in_file(words[1:] if command == "subdag" else words, read, base, deep)


def _find_in_file(words: Sequence[str], read: Reader, base: str, deep: int) -> Iterator[AskedLine]:
    """Parse `WORD NODE FILE [DIR PLACE]`, where WORD tells the type of the file."""
    if len(words) < 3:
        return
    upper = [word.upper() for word in words]
    at = upper.index("DIR", 3) + 1 if "DIR" in upper[3:] else len(words)
    place = os.path.join(base, words[at]) if at < len(words) else base
    text = read(os.path.join(place, words[2])) or ""
    if words[0].lower() in _NODES:
        yield from find_lines(text, _below(read, place), words[1])
    else:
        yield from find_lines_of_dag(text, read, place, deep + 1)


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
