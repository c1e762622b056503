"""Has a hook told of one event, in a process that a test kills at a point that it names: `… HOME URL`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.contract.services import ME, serving


async def main(home: Path, url: str) -> None:
    """Let something happen, and wait to be killed."""
    async with serving(home) as service:
        await service.notices.hooks.add_hook(ME, url, events=["ended"])
        await service.store.write(
            lambda tx: tx.events.add(service.now(), "0" * 36, ME.name, "session.completed", "", "COMPLETED")
        )
        await service.signals.announce()
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
