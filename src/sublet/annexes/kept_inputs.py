"""Which shared inputs were brought to which system, for which leases: on disk, so that a crash leaves nothing there."""

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

    path: str = ""  # empty: it is not there, as far as this service knows
    leases: set[str] = field(default_factory=set)  # those that protect it
    former: set[str] = field(default_factory=set)  # those for which an earlier service had brought it
    failed: datetime | None = None
    why: str = ""  # it failed
    unneeded: datetime | None = None  # since when no lease has it
    tried: datetime | None = None  # when it was last tried to remove it, if that is tried seldom
    bringing: asyncio.Task[None] | None = None

    @property
    def may_be_there(self) -> bool:
        """Whether the system may have it, so that it has to be removed there."""
        return bool(self.path or self.former)


class KeptInputs:
    """Every file that was brought, by its system and digest."""

    def __init__(self) -> None:
        """Nothing was brought yet."""
        self.brought: dict[tuple[str, str], Brought] = {}
        self._file: Path | None = None
        self._written = ""

    def load(self, directory: Path) -> None:
        """Remember what an earlier service had brought; once."""
        if self._file is not None:
            return
        self._file = directory / FILE
        try:
            known: Mapping[str, Mapping[str, list[str]]] = json.loads(self._file.read_bytes())
            for system, files in known.items():
                for digest, leases in files.items():
                    self.find(system, digest).former.update(leases or [""])
        except (OSError, ValueError, AttributeError, TypeError):
            return  # there is none, or it was damaged: the sweeper removes what is unused for long

    def find(self, system: str, digest: str) -> Brought:
        """What is known of one file; nothing, at first."""
        return self.brought.setdefault((system, digest), Brought())

    def save(self) -> None:
        """Write down what a service that is started after a crash has to know, if that is new."""
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
