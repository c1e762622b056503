"""Refuses jobs that could never run on an annex, before they are submitted."""

from __future__ import annotations

import os
from collections.abc import Iterable

from sublet.annexes.model.universes import find_lines, find_lines_of_dag
from sublet.kernel.errors import BadRequest


def refuse_lines(texts: Iterable[str]) -> None:
    """Raise BadRequest if submit descriptions, or lines of them, say what annexes can't run."""
    for line in (each for text in texts for each in find_lines(text, _read_if_there)):
        if not line.is_possible:
            raise BadRequest(line.problem, hint=line.remedy)


def refuse_lines_of_dag(file: str, words: Iterable[str]) -> None:
    """Raise BadRequest likewise for a DAG's nodes, except those that run at the access point, such as provisioners."""
    base = os.path.dirname(file) if any(word.lower().lstrip("-") == "usedagdir" for word in words) else ""
    for line in find_lines_of_dag(_read_if_there(file) or "", _read_if_there, base):
        if not line.is_possible:
            raise BadRequest(line.problem, hint=f"That is {line.node} in the DAG. {line.remedy}")


def _read_if_there(file: str) -> str | None:
    """Read a file; None if it can't be read: it may be written later, and HTCondor reports it otherwise."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except OSError:
        return None
