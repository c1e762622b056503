"""What a relay must know when it is started again: attempts, the nodes that came, and what was given up."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path

from sublet.annexes.pilots.keeping import keep
from sublet.annexes.split.ledger import AttemptStage, Ledger, OpenAttempt

PARTS = ("attempts", "nodes", "fenced")


class RelayMemory:
    """What a ledger says, as files of a relay's directory."""

    def __init__(self, directory: Path, ledger: Ledger) -> None:
        """Tell the ledger what an earlier relay left."""
        self.directory, self.ledger = directory, ledger
        self._owed: set[str] = set()  # attempts that there was no room to write down
        for part in PARTS:
            (directory / part).mkdir(mode=0o700, exist_ok=True)
        ledger.known = {int(file.name) for file in (directory / "nodes").iterdir()}
        ledger.fenced = {file.name for file in (directory / "fenced").iterdir()}
        self._fenced = set(ledger.fenced)
        for file in (directory / "attempts").glob("*.json"):
            values = json.loads(file.read_text())
            ledger.submit(OpenAttempt(**{**values, "stage": AttemptStage(values["stage"])}))

    def keep(self, attempt: OpenAttempt) -> None:
        """Write an attempt down as it is now."""
        keep(self.directory / "attempts" / f"{attempt.name}.json", json.dumps(asdict(attempt)).encode())

    def note(self, attempt: OpenAttempt) -> None:
        """Write an attempt down as it is, or as it is when there is room."""
        self._owed.discard(attempt.name)
        try:
            self.keep(attempt)
        except OSError:
            self._owed.add(attempt.name)

    def note_rest(self) -> None:
        """Write down what there was no room for."""
        for name in list(self._owed):
            self.note(self.ledger.attempts[name])
        for epoch in self.ledger.fenced - self._fenced:
            self.keep_fenced(epoch)

    def forget(self, name: str) -> None:
        """There is nothing more to know of an attempt."""
        self._owed.discard(name)
        (self.directory / "attempts" / f"{name}.json").unlink(missing_ok=True)
        self.ledger.forget(name)

    def keep_node(self, number: int) -> None:
        """A node has come."""
        with contextlib.suppress(OSError):  # it comes again with each heartbeat
            (self.directory / "nodes" / str(number)).touch(mode=0o600)

    def keep_fenced(self, epoch: str) -> None:
        """What this epoch of a node brings is void."""
        with contextlib.suppress(OSError):
            (self.directory / "fenced" / epoch).touch(mode=0o600)
            self._fenced.add(epoch)
