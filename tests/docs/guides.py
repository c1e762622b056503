"""Runs a guide: its `console` blocks are typed, and what they show must be what comes out.

In a guide, a line that begins with `$ ` is a command (continued while it ends in a backslash); the lines below it
are its output. `…` stands for anything within a line, and a line that is only `…` for any number of lines. What comes
on stdout and what on stderr may come in either order, each in its own, and what is waited for is not told. A block with
`file=NAME` beside its language (```yaml file=NAME) is written to that file first; with `filled` too, `$NAME` in it is
what the environment has.
"""

from __future__ import annotations

import os
import re
import string
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from tests.sites import look_often

WITHOUT_PROGRESS = "export SUBLET_PROGRESS=no"  # what is waited for is told after 30 s: on a busy machine more often
FENCE = re.compile(r"^```(\S*)(.*)$")


@dataclass
class Typed:
    """One command of a guide, with what it should show."""

    line: int
    command: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Written:
    """One file that a guide has the reader write."""

    line: int
    name: str
    text: str
    filled: bool = False  # with values of the environment


def parts(guide: str) -> list[Typed | Written]:
    """The commands and files of a guide, in order."""
    found: list[Typed | Written] = []
    language, info, block, begins = "", "", [], 0
    inside = False
    for number, line in enumerate(guide.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and not inside:
            inside, language, info, block, begins = True, fence[1], fence[2], [], number
        elif inside and line.startswith("```"):
            inside = False
            if language == "console":
                found += _typed(block, begins)
            elif named := re.search(r"file=(\S+)", info):
                found.append(Written(begins, named[1], "\n".join(block) + "\n", "filled" in info.split()))
        elif inside:
            block.append(line)
    return found


def _typed(block: list[str], begins: int) -> list[Typed]:
    commands: list[Typed] = []
    for number, line in enumerate(block, begins + 1):
        if line.startswith("$ "):
            commands.append(Typed(number, line[2:]))
        elif commands and commands[-1].command.endswith("\\") and not commands[-1].shown:
            commands[-1].command += "\n" + line.removeprefix("> ")
        elif commands:
            commands[-1].shown.append(line)
    return commands


def matches(shown: list[str], said: str, beside: str = "") -> bool:
    """Whether what was said, and what was said beside it, in whatever order, is what the guide shows."""
    patterns = [None if line.strip() == "…" else _pattern(line) for line in shown]
    streams = [line.rstrip() for line in said.splitlines()], [line.rstrip() for line in beside.splitlines()]
    reached = {(0, 0)}  # how many lines of each stream the guide may have shown so far
    for pattern in patterns:
        reached = _reached(reached, streams, pattern)
    return tuple(map(len, streams)) in reached


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(piece.rstrip()) for piece in line.rstrip().split("…")) + "[ ]*")


def _reached(
    places: set[tuple[int, int]], streams: tuple[list[str], list[str]], pattern: re.Pattern[str] | None
) -> set[tuple[int, int]]:
    """Where one more line of the guide leads; without a pattern it stands for any lines."""
    if pattern is None:
        ends = [range(len(stream) + 1) for stream in streams]
        return {(i, j) for i, j in product(*ends) if any(i >= at and j >= beside for at, beside in places)}
    found = {(at + 1, beside) for at, beside in places if any(map(pattern.fullmatch, streams[0][at : at + 1]))}
    return found | {
        (at, beside + 1) for at, beside in places if any(map(pattern.fullmatch, streams[1][beside : beside + 1]))
    }


def here(command: str) -> list[str]:
    """The words that type a command on this machine."""
    return ["bash", "-c", command]


def run_guide(
    guide: Path,
    directory: Path,
    environment: dict[str, str],
    shell: Callable[[str], list[str]] = here,
    systems: Path | None = None,
    seconds: float = 120,
) -> list[str]:
    """Type a whole guide into one shell's worth of commands; what differs, each as a paragraph.

    What is in `systems` is asked often: a reader has more time than a test. Each command has so many seconds.
    """
    differences = []
    env = {**os.environ, **environment}
    for part in parts(guide.read_text()):
        if isinstance(part, Written):
            target = directory / part.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(string.Template(part.text).safe_substitute(env) if part.filled else part.text)
            continue
        done = subprocess.run(
            shell(f"{WITHOUT_PROGRESS}\n{part.command}"),
            cwd=directory,
            env=env,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
        if systems:
            look_often(systems)
        if not matches(part.shown, done.stdout, done.stderr):
            streams = ("shown", "\n".join(part.shown)), ("said", done.stdout), ("said beside it", done.stderr)
            told = "\n".join(f"--- {name}\n{text}" for name, text in streams)
            differences.append(f"{guide.name}:{part.line}: $ {part.command}\n{told}")
    return differences
