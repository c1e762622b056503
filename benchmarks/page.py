"""The published tables in docs/performance.md: one section a benchmark, each with the day and the code it is of."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from benchmarks.row import Row

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
MARK = "<!-- Below: written by `python -m benchmarks --write` -->"
HEADING = re.compile(r"^## (P\d+): ", re.MULTILINE)
STAMP = re.compile(r"^Measured on (\S+) with Sublet (\S+) at commit (\S+); benchmark code (\S+)\.$", re.MULTILINE)
RELEASE = re.compile(r"^## (\d+\.\d+\.\d+)", re.MULTILINE)
SHARED = re.compile(r"^from benchmarks\.(\w+) import", re.MULTILINE)
EVERYONES = {"row", "size", "page"}  # changing these changes no figure


@dataclass(frozen=True)
class Stamp:
    """Which code a table is of."""

    day: date
    version: str
    commit: str
    code: str  # the digest of the benchmark's own source

    def __str__(self) -> str:
        """The line above the table."""
        return f"Measured on {self.day} with Sublet {self.version} at commit {self.commit}; benchmark code {self.code}."


def read_sections(text: str) -> dict[str, str]:
    """The page's sections by the benchmark's name in lower case."""
    tables = text.partition(MARK)[2]
    starts = [match.start() for match in HEADING.finditer(tables)] + [len(tables)]
    parts = [tables[begin:end].strip() for begin, end in pairwise(starts)]
    return {part[3 : part.index(":")].lower(): part for part in parts}


def read_stamp(section: str) -> Stamp | None:
    """Which code a section's table is of; None where it doesn't say."""
    match = STAMP.search(section)
    if not match:
        return None
    day, version, commit, code = match.groups()
    return Stamp(date.fromisoformat(day), version, commit, code)


def replace_section(text: str, name: str, title: str, stamp: Stamp, rows: Sequence[Row]) -> str:
    """The page with one benchmark's table made anew; the others stay as they were."""
    sections = read_sections(text) | {name: f"## {name.upper()}: {title}\n\n{stamp}\n\n{to_markdown(rows)}"}
    ordered = (sections[key] for key in sorted(sections, key=lambda key: int(key[1:])))
    return "\n\n".join([text.partition(MARK)[0] + MARK, *ordered]) + "\n"


def to_markdown(rows: Sequence[Row]) -> str:
    """The rows as a table of a page."""
    words = {None: "", True: "met", False: "**not met**"}
    lines = [f"| {row.what} | {row.figure} | {row.goal} | {words[row.met]} |" for row in rows]
    return "\n".join(["| what | figure | goal | |", "| --- | --- | --- | --- |", *lines])


def make_stamp(name: str) -> Stamp:
    """This moment's code."""
    return Stamp(datetime.now(UTC).date(), version("sublet"), _commit(), code_digest(name))


def code_digest(name: str) -> str:
    """A digest of a benchmark's source, with what it shares with others of them."""
    source = (ROOT / "benchmarks" / f"{name}.py").read_text()
    shared = sorted(set(SHARED.findall(source)) - EVERYONES)
    whole = source + "".join((ROOT / "benchmarks" / f"{other}.py").read_text() for other in shared)
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def _commit() -> str:
    """The commit that is checked out, with a + where code was changed since."""
    head = _git("rev-parse", "--short=8", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "benchmarks", "testbed")
    return f"{head or 'unknown'}{'+' if changed else ''}"


def has_history() -> bool:
    """Whether all commits are here: not in a shallow clone, nor where there is no git."""
    return _git("rev-parse", "--is-shallow-repository") == "false"


def is_in_history(commit: str) -> bool:
    """Whether a stamp's commit leads to the one that is checked out."""
    words = ["merge-base", "--is-ancestor", f"{commit.removesuffix('+')}^{{commit}}", "HEAD"]
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True).returncode == 0


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.strip()


def is_stale(stamp: Stamp, code: str, releases: Sequence[str]) -> bool:
    """Whether a benchmark was changed after its table was made, more than one release ago; newest release first."""
    return stamp.code != code and stamp.version not in releases[:2]


def read_releases(changelog: str) -> list[str]:
    """The releases that a changelog names, newest first."""
    return RELEASE.findall(changelog)
