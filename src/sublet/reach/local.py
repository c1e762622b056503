"""A reach for this machine: it starts a single command directly, and runs several in one `sh`, like those over ssh."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from sublet.kernel.errors import PlatformUnreachable
from sublet.kernel.shortage import is_shortage
from sublet.reach.batch import LISTEN, Batch, encode, write_stream_line
from sublet.reach.channel import Channel, Cut
from sublet.reach.port import Command, Outcome
from sublet.reach.shell import ShellReach

NOT_RUN, NOT_FOUND = 126, 127  # exit codes of a shell for a command that can't be run or doesn't exist


class LocalReach(ShellReach):
    """Commands on this machine, run as the service's user."""

    def __init__(self, name: str = "here", home: Path | None = None, at_once: int = 4) -> None:
        """Start commands in `home` (by default the user's home directory), at most `at_once` at a time."""
        super().__init__(name)
        self._home = home or Path.home()
        self._free = asyncio.Semaphore(at_once)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Return the address itself, since this machine can reach it directly."""
        return f"http://{host}:{port}"

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads a stream."""
        environment = {**os.environ, "HOME": str(self._home)}
        channel = await Channel.open(("sh", "-c", write_stream_line(argv)), environment=environment)
        try:
            return await channel.pour(pieces)
        finally:
            await channel.kill()

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Run a batch in its own `sh`; a single command is started without one."""
        async with self._free:
            if len(batch.commands) == 1:
                return [await self._outcome(batch.commands[0])]
            channel = await Channel.open(("sh", "-c", LISTEN), environment={**os.environ, "HOME": str(self._home)})
            try:
                outcomes = await channel.exchange(batch, seconds, last=True)
                await channel.close()
            except TimeoutError as error:
                why = f"no answer within {seconds:.0f} s"
                raise PlatformUnreachable(platform=self.name, why=why) from error
            except Cut as cut:
                raise PlatformUnreachable(platform=self.name, why=cut.words or "sh ended early") from cut
            finally:
                await channel.kill()
        return outcomes

    async def _outcome(self, command: Command[Any]) -> Outcome:
        environment = {name: value for name, value in os.environ.items() if name != "CDPATH"}
        environment |= {"HOME": str(self._home), "TZ": "UTC", "LC_ALL": "C"}
        place = self._home if self._home.is_dir() else None
        try:
            channel = await Channel.open([*map(encode, command.argv)], environment=environment, directory=place)
        except OSError as error:
            if is_shortage(error):
                raise PlatformUnreachable(platform=self.name, why=str(error.strerror)) from error
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUN
            return Outcome(code, b"", os.fsencode(f"{command.argv[0]}: {error.strerror}\n"))
        try:
            return await channel.answer(command.stdin, command.seconds)
        except Cut as cut:
            raise PlatformUnreachable(platform=self.name, why=cut.words) from cut
        finally:
            await channel.kill()
