"""A small HPC site of the testbed to measure on, what its scheduler was asked, and how often it was reached."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sublet.reach.batch import Batch
from sublet.reach.port import Outcome
from sublet.reach.shell import ShellReach

SITE = [sys.executable, str(Path(__file__).resolve().parents[1] / "testbed" / "site")]
RPC = re.compile(r"^\s+(REQUEST_\w+)\s+\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)


class NoSite(Exception):
    """No site can be started here."""


class Site:
    """A site that is up."""

    def __init__(self, name: str) -> None:
        """Read where it is."""
        self.name = name
        self.facts: dict[str, Any] = json.loads(_control("status", name, "--json"))

    @property
    def settings(self) -> dict[str, Any]:
        """A platform on it, reached by the service account's key; its manners are the usual ones."""
        ssh = {"UserKnownHostsFile": self.facts["known_hosts"], "HostKeyAlias": self.name}
        return {
            "kind": "slurm",
            "host": self.facts["host"],
            "user": "service",
            "key": self.facts["key_file"],
            "ssh": ssh,
        }

    def on(self, where: str, *words: str) -> str:
        """What a command prints on one of its machines."""
        return _control("exec", self.name, where, *words)

    def forget(self) -> None:
        """Let its scheduler begin to count anew."""
        self.on("ctl", "sdiag", "--reset")

    def asked(self) -> Counter[str]:
        """What its scheduler was asked since then, by the names of Slurm's own messages."""
        return Counter({name: int(count) for name, count in RPC.findall(self.on("ctl", "sdiag"))})


@contextmanager
def site(*options: str) -> Iterator[Site]:
    """A site that lasts as long as the block; NoSite if there can be none here."""
    name = f"bench{os.getpid()}"
    done = subprocess.run([*SITE, "up", name, "--owner", str(os.getpid()), *options], capture_output=True, text=True)
    if done.returncode:
        raise NoSite(done.stderr.strip().removeprefix("SKIP: ").splitlines()[-1])
    try:
        yield Site(name)
    finally:
        _control("down", name)


def _control(*words: str) -> str:
    return subprocess.run([*SITE, *words], check=True, capture_output=True, text=True).stdout


class Counted(ShellReach):
    """Another reach, with its round trips counted, and the commands that went in them."""

    def __init__(self, inner: ShellReach) -> None:
        """Nothing has been asked yet."""
        super().__init__(inner.name)
        self._inner = inner
        self.execs = 0
        self.commands: Counter[str] = Counter()

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Count it, and pass it on."""
        self.execs += 1
        self.commands.update(command.argv[0] for command in batch.commands)
        return await self._inner.exchange(batch, seconds)


def counted(platform: Any) -> Counted:
    """Have the round trips of a platform counted from now on; the pace that it keeps stays."""
    paced = platform.reach
    paced.inner = reach = Counted(paced.inner)
    return reach
