"""Records, on disk, which shared inputs were copied to which system for which leases, so that a crash leaks none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sublet.annexes.pilots.keeping import keep, make_private

FILE = "inputs.json"


@dataclass
class Brought:
    """One file on one system."""

    path: str = ""  # empty: it isn't there, as far as this service knows
    leases: set[str] = field(default_factory=set)  # leases that need it
    former: set[str] = field(default_factory=set)  # leases it was, or is about to be, copied for
    failed: datetime | None = None
    why: str = ""  # why copying failed
    unneeded: datetime | None = None  # since when no lease needs it
    tried: datetime | None = None  # the last attempt to remove it, once attempts are rare
    bringing: asyncio.Task[None] | None = None

    @property
    def may_be_there(self) -> bool:
        """Whether the system may have the file, so that it has to be removed there."""
        return bool(self.path or self.former)


class KeptInputs:
    """Every file that was copied, by system and digest."""

    def __init__(self) -> None:
        """Start with no files."""
        self.brought: dict[tuple[str, str], Brought] = {}
        self._file: Path | None = None
        self._written = ""

    def load(self, directory: Path) -> None:
        """Load the record of an earlier process of the service, once."""
        if self._file is not None:
            return
        self._file = directory / FILE
        try:
            known: Mapping[str, Mapping[str, list[str]]] = json.loads(self._file.read_bytes())
            for system, files in known.items():
                for digest, leases in files.items():
                    self.find(system, digest).former.update(leases or [""])
        except (OSError, ValueError, AttributeError, TypeError):
            return  # missing or damaged: the sweeper removes what has been unused for long

    def find(self, system: str, digest: str) -> Brought:
        """Return the state of a file, which is empty at first."""
        return self.brought.setdefault((system, digest), Brought())

    def save(self) -> None:
        """Save what the service needs to know after a crash, if it has changed."""
        if self._file is None:
            return
        known: dict[str, dict[str, list[str]]] = {}
        for (system, digest), state in sorted(self.brought.items()):
            if state.may_be_there or state.bringing:
                known.setdefault(system, {})[digest] = sorted(state.leases | state.former)
        text = json.dumps(known)
        if text != self._written and (known or self._file.exists()):
            make_private(self._file.parent)
            keep(self._file, text.encode())
        self._written = text
