"""What a relay must know when it is started again: attempts, the nodes that came, and what was given up."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from sublet.pilots.keeping import keep
from sublet.pilots.split.ledger import Attempt, Ledger, Stage

PARTS = ("attempts", "nodes", "fenced")


class Kept:
    """What a ledger says, as files of a relay's directory."""

    def __init__(self, directory: Path, ledger: Ledger) -> None:
        """Tell the ledger what an earlier relay left."""
        self.directory, self.ledger = directory, ledger
        for part in PARTS:
            (directory / part).mkdir(mode=0o700, exist_ok=True)
        ledger.known = {int(file.name) for file in (directory / "nodes").iterdir()}
        ledger.fenced = {file.name for file in (directory / "fenced").iterdir()}
        for file in (directory / "attempts").glob("*.json"):
            values = json.loads(file.read_text())
            ledger.submit(Attempt(**{**values, "stage": Stage(values["stage"])}))

    def keep(self, attempt: Attempt) -> None:
        """Write an attempt down as it is now."""
        keep(self.directory / "attempts" / f"{attempt.name}.json", json.dumps(asdict(attempt)).encode())

    def forget(self, name: str) -> None:
        """There is nothing more to know of an attempt."""
        (self.directory / "attempts" / f"{name}.json").unlink(missing_ok=True)
        self.ledger.forget(name)

    def keep_node(self, number: int) -> None:
        """A node has come."""
        (self.directory / "nodes" / str(number)).touch(mode=0o600)

    def keep_fenced(self, epoch: str) -> None:
        """What this epoch of a node brings is void."""
        (self.directory / "fenced" / epoch).touch(mode=0o600)
