"""Run ssh without a person: check for the shared connection, and read the configuration for a target."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import DEVNULL, PIPE

from sublet.reach.target import Target


async def ask_ssh(argv: tuple[str, ...], seconds: float = 5.0) -> tuple[int, str]:
    """Run an ssh command that needs no input; return its exit code (255 if it hangs) and its output."""
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
    """Return the pid of the process that holds the shared connection open, or None if there is none."""
    if not target.socket.exists():
        return None
    code, answer = await ask_ssh(target.to_check())
    match = re.search(r"pid=(\d+)", answer)
    return int(match[1]) if code == 0 and match else None


async def configuration(target: Target) -> dict[str, list[str]]:
    """Return the settings that ssh would use for a target."""
    _, answer = await ask_ssh(target.to_explain())
    settings: dict[str, list[str]] = {}
    for line in answer.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, []).append(value)
    return settings
