"""Where Sublet keeps its state: everything is below one directory, SUBLET_HOME.

Paths are plain text here: the command line looks at one of them, and pathlib would be a tenth of its start-up time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Home:
    """The places below SUBLET_HOME."""

    root: str

    @property
    def settings(self) -> str:
        """The operator's file."""
        return os.path.join(self.root, "sublet.toml")

    @property
    def database(self) -> str:
        """The embedded database."""
        return os.path.join(self.root, "sublet.db")

    @property
    def run(self) -> str:
        """What lives as long as a service runs."""
        return os.path.join(self.root, "run")

    @property
    def socket(self) -> str:
        """Where the personal service listens; only its owner can reach it."""
        return os.path.join(self.run, "sublet.sock")

    @property
    def state(self) -> str:
        """Which process serves, since when and where: pid, start, url, socket."""
        return os.path.join(self.run, "service.json")

    @property
    def systems(self) -> str:
        """The person's own systems, a file each."""
        return os.path.join(self.root, "systems")

    @property
    def gateways(self) -> str:
        """The tokens for gateways that the person signed in to, a file each."""
        return os.path.join(self.root, "gateways")

    @property
    def log(self) -> str:
        """What the service that started by itself has said."""
        return os.path.join(self.root, "logs", "service.log")

    def make(self) -> None:
        """Make the directories, for their owner alone."""
        for directory in (self.root, self.run, os.path.dirname(self.log)):
            os.makedirs(directory, mode=0o700, exist_ok=True)


def sublet_home() -> Home:
    """The home that the environment names: SUBLET_HOME, else a place in the user's data directory."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Home(os.path.abspath(os.environ.get("SUBLET_HOME") or os.path.join(data, "sublet")))
