"""Refuses jobs that could never run on an annex, before they are submitted."""

from __future__ import annotations

import os
from collections.abc import Iterable

from sublet.annexes.model.universes import (
    AT_THE_POINT,
    INSTEAD,
    ON_NODES,
    find_universes,
    find_universes_of_dag,
    say_no,
)
from sublet.kernel.errors import BadRequest


def refuse_universes(texts: Iterable[str]) -> None:
    """Raise BadRequest if submit descriptions, or lines of them, use a universe that annexes can't run."""
    for universe in (each for text in texts for each in find_universes(text, _read_if_there)):
        if universe not in ON_NODES:
            raise BadRequest(say_no(universe), hint=INSTEAD)


def refuse_universes_of_dag(file: str, words: Iterable[str]) -> None:
    """Raise BadRequest likewise for a DAG's nodes, except those that run at the access point, such as provisioners."""
    base = os.path.dirname(file) if any(word.lower().lstrip("-") == "usedagdir" for word in words) else ""
    for asked in find_universes_of_dag(_read_if_there(file) or "", _read_if_there, base):
        if asked.universe not in ON_NODES | AT_THE_POINT:
            raise BadRequest(say_no(asked.universe), hint=f"That is {asked.node} in the DAG. {INSTEAD}")


def _read_if_there(file: str) -> str | None:
    """Read a file; None if it can't be read: it may be written later, and HTCondor reports it otherwise."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except OSError:
        return None
