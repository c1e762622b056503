"""What every reach does alike once it can exchange a batch with a far `sh`."""

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

_STOPPED = {STOPPED, 137}  # what `timeout` answers for a command that it ended: by a word, by force
_SLACK = 30.0  # seconds for everything but the commands: a slow login shell, a slow network
_READ = 'exec <"$1" || exit 1; tail -c "+$2" | head -c "$3"'


class ShellReach(ABC):
    """A way to one machine by its `sh`; what is under it says how a batch is exchanged."""

    def __init__(self, name: str) -> None:
        """Name the machine, for errors."""
        self.name = name

    @abstractmethod
    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Bring a batch there and its outcomes back."""

    async def run(self, command: Command[T]) -> T:
        """Run one command."""
        outcome = (await self._outcomes([command]))[0]
        return command.reader(outcome)

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run them one after another in one exec, whatever the others' exit codes."""
        if not commands:
            return []
        outcomes = await self._outcomes(commands)
        return [command.reader(outcome) for command, outcome in zip(commands, outcomes, strict=True)]

    async def read(self, path: str, offset: int, limit: int) -> bytes:
        """Part of a file there; empty beyond its end; PlatformRefused where it can't be read."""
        return await self.run(Command(("sh", "-c", _READ, "sh", path, str(offset + 1), str(limit)), self._bytes))

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        """Bring a file or a directory there, each file whole or not at all; goes on where a try before stopped."""
        await send(self, source, target, progress)

    async def fetch(self, source: str, target: Path, progress: Progress) -> None:
        """Bring a file or a directory from there, each file whole or not at all; goes on where a try before stopped."""
        await fetch(self, source, target, progress)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """No way, unless what is under it has one."""
        raise PlatformRefused(platform=self.name, why="nothing on a machine behind it can be connected to")

    async def untunnel(self, name: str) -> None:  # noqa: B027 - most make none
        """Nothing was made."""

    async def close(self) -> None:  # noqa: B027 - most hold nothing, and need not say so
        """Nothing is held between two commands."""

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
