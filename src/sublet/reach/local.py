"""This machine: the same `sh` and the same batches, without a network between."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from sublet.errors import PlatformUnreachable
from sublet.reach.batch import LISTEN, Batch
from sublet.reach.channel import Channel, Cut
from sublet.reach.port import Outcome
from sublet.reach.shell import ShellReach


class LocalReach(ShellReach):
    """Commands on this machine, as the user that the service runs as."""

    def __init__(self, name: str = "here", home: Path | None = None, at_once: int = 4) -> None:
        """Start commands in `home` (the user's own, unless told), so many at a time."""
        super().__init__(name)
        self._home = home or Path.home()
        self._free = asyncio.Semaphore(at_once)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """The address itself: this machine can reach it."""
        return f"http://{host}:{port}"

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Run a batch in an `sh` of its own."""
        async with self._free:
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
