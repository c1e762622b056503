"""What a relay is to do, as the service writes it down and the relay reads it."""

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
    spool: str  # the lease's directory on the file system that its nodes see
    channel: tuple[str, ...]  # the words that start a Python there, which reads its program
    urls: tuple[str, ...] = ()  # where the service answers what nodes ask
    certificate: str = ""
    dead: float = 8.0
    grace: float = 120.0
    silent: float = 10.0  # seconds without a word of the agent after which the channel is given up
    poll: float = 0.1
    room: float = 300.0  # seconds that an input waits for room in the spool
    keep_results: float = 900.0  # seconds that a result waits for room here
    release: dict[str, str] = field(default_factory=dict)  # where HTCondor is here; empty: there are no bridges

    def keep(self, directory: Path) -> None:
        """Write it down in a relay's directory."""
        keep(directory / FILE, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, directory: Path) -> RelayOrders:
        """The one in a relay's directory."""
        values = json.loads((directory / FILE).read_text())
        lists = {name: tuple(values.get(name, ())) for name in ("channel", "urls")}
        return cls(**{**values, **lists})
