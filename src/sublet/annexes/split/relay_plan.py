"""The settings of a relay, which the service writes and the relay reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sublet.annexes.pilots.keeping import keep

FILE = "relay.json"


@dataclass(frozen=True)
class RelayOrders:
    """The settings of a relay."""

    lease: str
    nodes: int
    spool: str  # the lease's directory on the file system of its nodes
    channel: tuple[str, ...]  # the command that starts a Python there, which reads its program
    urls: tuple[str, ...] = ()  # where the service answers nodes' questions
    certificate: str = ""
    dead: float = 8.0
    grace: float = 120.0
    silent: float = 10.0  # seconds without a message of the agent after which the channel is closed
    poll: float = 0.1
    room: float = 300.0  # seconds that an input waits for room in the spool
    keep_results: float = 900.0  # seconds that a result waits for room here
    release: dict[str, str] = field(default_factory=dict)  # the directories of HTCondor here; empty: no bridges

    def keep(self, directory: Path) -> None:
        """Write the settings into a relay's directory."""
        keep(directory / FILE, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, directory: Path) -> RelayOrders:
        """Read the settings from a relay's directory."""
        values = json.loads((directory / FILE).read_text())
        lists = {name: tuple(values.get(name, ())) for name in ("channel", "urls")}
        return cls(**{**values, **lists})
