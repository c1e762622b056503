"""Job sets: HTCondor files with a name, a table of values, and jobs that are queued once for each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sublet.kernel.errors import BadJobSet

COMMAND = re.compile(r"(name|iterator|job)\b\s*(=?)\s*(.*)", re.IGNORECASE)
NAME = re.compile(r"[^\"\\$\x00-\x1f\x7f]{1,200}")  # what a ClassAd string can hold without escapes
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
QUEUE = re.compile(r"\s*queue\b", re.IGNORECASE)
BETWEEN = "\x1f"  # HTCondor's separator for the values of a row, which may contain commas and spaces
Reader = Callable[[str], str]  # returns the text of a file that a job set names


@dataclass(frozen=True, slots=True)
class JobSet:
    """A job set to submit: one cluster for each of its jobs."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    jobs: tuple[str, ...]  # submit descriptions, without `queue`

    def descriptions(self) -> Iterator[str]:
        """Yield the submit description of each job."""
        rows = "".join(f"{BETWEEN.join(row)}\n" for row in self.rows)
        for job in self.jobs:
            marks = f'MY.JobSetName = "{self.name}"\nMY.InJobSet = true\n'
            yield f"{job.rstrip()}\n{marks}queue {','.join(self.columns)} from (\n{rows})\n"


def parse_jobset(text: str, read: Reader, file: str = "the job set") -> JobSet:
    """Parse a job set; raise BadJobSet, which names the line, if it isn't valid."""
    lines = Lines(text, file)
    commands: dict[str, str] = {}
    table: tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None = None
    jobs: list[str] = []
    for line in lines:
        matched = COMMAND.fullmatch(_strip_comment(line))
        if not matched:
            raise lines.wrong(f"{line.split()[0]} is none of name, iterator and job")
        word, rest = matched[1].lower(), matched[3].strip()
        if word in commands and word != "job":
            raise lines.wrong(f"there is a second {word}")
        commands[word] = rest
        if word == "iterator":
            table = _table(rest, lines, read)
        elif word == "job":
            jobs.append(_job(rest, lines, read))
    name = commands.get("name", "")
    if not NAME.fullmatch(name):
        raise BadJobSet(file=file, why=f"{name!r} can't be its name" if name else "it has no name")
    if table is None or not jobs:
        raise BadJobSet(file=file, why="it has no iterator" if table is None else "it has no job")
    return JobSet(name, *table, tuple(jobs))


class Lines:
    """Iterator over the lines of a job set, without comments and empty lines."""

    def __init__(self, text: str, file: str) -> None:
        """Start at the first line."""
        self._lines, self._file, self._number = text.split("\n"), file, 0

    def __iter__(self) -> Iterator[str]:
        """Yield the remaining lines."""
        while self._number < len(self._lines):
            line = self._lines[self._number].strip()
            self._number += 1
            if line and not line.startswith("#"):
                yield line

    def block(self) -> str:
        """Return all lines up to the closing bracket."""
        first = self._number
        for number in range(first, len(self._lines)):
            if _strip_comment(self._lines[number]) == "}":
                self._number = number + 1
                return "\n".join(self._lines[first:number]) + "\n"
        raise self.wrong("this bracket is never closed")

    def wrong(self, why: str) -> BadJobSet:
        """Return the error for the line that was read last."""
        return BadJobSet(file=f"{self._file}, line {self._number}", why=why)


def _table(rest: str, lines: Lines, read: Reader) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Parse `table NAMES FILE` or `table NAMES {`, and the rows."""
    words = rest.replace(",", " ").split()
    if len(words) < 3 or words[0].lower() != "table":
        raise lines.wrong("an iterator is written as: table NAMES FILE, or table NAMES { … }")
    columns = tuple(words[1:-1])
    for column in columns:
        if not VARIABLE.fullmatch(column):
            raise lines.wrong(f"{column} can't be the name of a variable")
    source = rest.split()[-1]
    text = lines.block() if source == "{" else read(source)
    rows = [tuple(value.strip() for value in _strip_comment(line).split(",")) for line in text.split("\n")]
    rows = [row for row in rows if row != ("",)]
    for row in rows:
        if len(row) != len(columns):
            raise lines.wrong(f"the row {','.join(row)} has {len(row)} values for {len(columns)} names")
    if not rows:
        raise lines.wrong("its table has no rows")
    return columns, tuple(rows)


def _job(rest: str, lines: Lines, read: Reader) -> str:
    """Parse `job [x=foo,y=bar] FILE` or `job [x=foo,y=bar] {`: a submit description with its variables renamed."""
    words = rest.replace(",", " ").split()
    if not words:
        raise lines.wrong("a job is written as: job FILE, or job { … }")
    pairs = [word.partition("=") for word in words[:-1]]
    for name, mark, other in pairs:
        if not (mark and VARIABLE.fullmatch(name) and VARIABLE.fullmatch(other)):
            raise lines.wrong(f"{name}{mark}{other} is no mapping of a name to another: write x=foo")
    text = lines.block() if words[-1] == "{" else read(rest.split()[-1])
    return _map_variables("\n".join(_drop_queue_lines(text)), {name.lower(): other for name, _, other in pairs})


def _drop_queue_lines(text: str) -> Iterator[str]:
    """Yield the lines of a description without `queue` statements and their rows, which a job set ignores."""
    listing = False
    for line in text.splitlines():
        if listing:
            listing = line.strip() != ")"
        elif QUEUE.match(line):
            listing = line.rstrip().endswith("(")
        else:
            yield line.strip()


def _map_variables(text: str, names: Mapping[str, str]) -> str:
    """Replace the variables `$(x)` of a description by their mapped names."""
    return re.sub(r"\$\(([^):]+)", lambda match: f"$({names.get(match[1].strip().lower(), match[1])}", text)


def _strip_comment(line: str) -> str:
    return line.split("#", 1)[0].strip()
