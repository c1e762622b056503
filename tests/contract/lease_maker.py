"""Makes one lease in a process of its own, which a test kills at a point that it names: `python -m … HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.contract.leases import leasing, made


async def main(home: Path) -> None:
    """Make it, and wait to be killed by the loop, if it was not before."""
    async with leasing(home) as service:
        await made(service)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
