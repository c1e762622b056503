"""Questions to ssh that need no person: is the connection there, and how would you go there?"""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import DEVNULL, PIPE

from sublet.reach.target import Target


async def ask_ssh(argv: tuple[str, ...], seconds: float = 5.0) -> tuple[int, str]:
    """Run an ssh that needs no person: its exit code, and all that it said; 255 if it hangs."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=DEVNULL, stdout=PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True
    )
    try:
        async with asyncio.timeout(seconds):
            answer, _ = await process.communicate()
    except TimeoutError:
        return 255, "it hangs"
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
    return process.returncode or 0, answer.decode("utf-8", "replace")


async def master(target: Target) -> int | None:
    """The process that holds the shared connection open; None: there is none."""
    if not target.socket.exists():
        return None
    code, answer = await ask_ssh(target.to_check())
    match = re.search(r"pid=(\d+)", answer)
    return int(match[1]) if code == 0 and match else None


async def configuration(target: Target) -> dict[str, list[str]]:
    """ssh's settings for a target, as it would use them."""
    _, answer = await ask_ssh(target.to_explain())
    settings: dict[str, list[str]] = {}
    for line in answer.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, []).append(value)
    return settings
