"""The common parts of every reach that can exchange a batch with a remote `sh`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.batch import Batch
from sublet.reach.channel import STOPPED
from sublet.reach.fetching import fetch
from sublet.reach.port import Command, Outcome, Progress, T
from sublet.reach.sending import send

_STOPPED = {STOPPED, 137}  # exit codes of `timeout` for a command that it ended: by SIGTERM, by SIGKILL
_SLACK = 30.0  # seconds beyond the commands' own: a slow login shell, a slow network
_READ = 'exec <"$1" || exit 1; tail -c "+$2" | head -c "$3"'


class ShellReach(ABC):
    """Access to one machine through its `sh`; a subclass implements the exchange of a batch."""

    def __init__(self, name: str) -> None:
        """Set the machine's name, for error messages."""
        self.name = name

    @abstractmethod
    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Run a batch on the machine and return its outcomes."""

    async def run(self, command: Command[T]) -> T:
        """Run one command."""
        outcome = (await self._outcomes([command]))[0]
        return command.reader(outcome)

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run the commands one after another in one exec, whatever the others' exit codes."""
        if not commands:
            return []
        outcomes = await self._outcomes(commands)
        return [command.reader(outcome) for command, outcome in zip(commands, outcomes, strict=True)]

    async def read(self, path: str, offset: int, limit: int) -> bytes:
        """Read part of a file; empty beyond its end. Raise PlatformRefused if it can't be read."""
        return await self.run(Command(("sh", "-c", _READ, "sh", path, str(offset + 1), str(limit)), self._bytes))

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        """Send a file or a directory, each file completely or not at all; resume an interrupted attempt."""
        await send(self, source, target, progress)

    async def fetch(self, source: str, target: Path, progress: Progress) -> None:
        """Fetch a file or a directory, each file completely or not at all; resume an interrupted attempt."""
        await fetch(self, source, target, progress)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Refuse: only some subclasses can open tunnels."""
        raise PlatformRefused(platform=self.name, why="nothing on a machine behind it can be connected to")

    async def untunnel(self, name: str) -> None:  # noqa: B027 - most make none
        """Do nothing, as there are no tunnels."""

    async def close(self) -> None:  # noqa: B027 - most hold nothing, and need not say so
        """Do nothing, as nothing is held between commands."""

    async def _outcomes(self, commands: Sequence[Command[Any]]) -> list[Outcome]:
        started = time.monotonic()
        outcomes = await self.exchange(Batch(commands), sum(c.seconds for c in commands) + _SLACK)
        elapsed = time.monotonic() - started
        for command, outcome in zip(commands, outcomes, strict=True):
            if outcome.code in _STOPPED and elapsed >= command.seconds:
                why = f"{command.argv[0]} gave no answer within {command.seconds} s"
                raise PlatformUnreachable(platform=self.name, why=why)
        return outcomes

    def _bytes(self, outcome: Outcome) -> bytes:
        if outcome.code:
            raise PlatformRefused(platform=self.name, why=outcome.complaint)
        return outcome.stdout
