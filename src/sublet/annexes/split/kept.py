"""What a relay must know after a restart: attempts, nodes that have reported, and fenced epochs."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path

from sublet.annexes.pilots.keeping import keep
from sublet.annexes.split.ledger import AttemptStage, Ledger, OpenAttempt

PARTS = ("attempts", "nodes", "fenced")


class RelayMemory:
    """A ledger's state, as files in a relay's directory."""

    def __init__(self, directory: Path, ledger: Ledger) -> None:
        """Load what an earlier relay left into the ledger."""
        self.directory, self.ledger = directory, ledger
        self._owed: set[str] = set()  # attempts that couldn't be saved for lack of room
        for part in PARTS:
            (directory / part).mkdir(mode=0o700, exist_ok=True)
        ledger.known = {int(file.name) for file in (directory / "nodes").iterdir()}
        ledger.fenced = {file.name for file in (directory / "fenced").iterdir()}
        self._fenced = set(ledger.fenced)
        for file in (directory / "attempts").glob("*.json"):
            values = json.loads(file.read_text())
            ledger.submit(OpenAttempt(**{**values, "stage": AttemptStage(values["stage"])}))

    def keep(self, attempt: OpenAttempt) -> None:
        """Save an attempt in its current state."""
        keep(self.directory / "attempts" / f"{attempt.name}.json", json.dumps(asdict(attempt)).encode())

    def note(self, attempt: OpenAttempt) -> None:
        """Save an attempt, now or when there is room."""
        self._owed.discard(attempt.name)
        try:
            self.keep(attempt)
        except OSError:
            self._owed.add(attempt.name)

    def note_rest(self) -> None:
        """Save what couldn't be saved before."""
        for name in list(self._owed):
            self.note(self.ledger.attempts[name])
        for epoch in self.ledger.fenced - self._fenced:
            self.keep_fenced(epoch)

    def forget(self, name: str) -> None:
        """Delete an attempt that is over."""
        self._owed.discard(name)
        (self.directory / "attempts" / f"{name}.json").unlink(missing_ok=True)
        self.ledger.forget(name)

    def keep_node(self, number: int) -> None:
        """Record that a node has reported."""
        with contextlib.suppress(OSError):  # repeated with each heartbeat
            (self.directory / "nodes" / str(number)).touch(mode=0o600)

    def keep_fenced(self, epoch: str) -> None:
        """Record that the results of this epoch of a node are void."""
        with contextlib.suppress(OSError):
            (self.directory / "fenced" / epoch).touch(mode=0o600)
            self._fenced.add(epoch)
