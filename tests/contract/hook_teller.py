"""Runs one session that a hook is told of, in a process that a test kills at a point that it names: `… HOME URL`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.contract.services import ME, ask, over, serving


async def main(home: Path, url: str) -> None:
    """Run it, and wait to be killed, if it was not before."""
    async with serving(home) as service:
        await service.add_hook(ME, url, events=["ended"])
        mine = await ask(service)
        await over(service, (await service.accept(mine.offers[0].id, ME)).id)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
