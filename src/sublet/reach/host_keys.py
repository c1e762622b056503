"""A host's public keys, as ssh-keyscan shows them; a person has to confirm them."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence

from sublet.access.model.account import fingerprint, host_key
from sublet.kernel.errors import PlatformUnreachable
from sublet.reach.target import check_name

_SECONDS = 20.0


async def scan(host: str, port: int) -> Sequence[str]:
    """Return `TYPE KEY` for each key of the host, ed25519 first; raise PlatformUnreachable if there is none."""
    check_name(host)
    process = await asyncio.create_subprocess_exec(
        *("ssh-keyscan", "-T", "10", "-p", str(port), "--", host), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(_SECONDS):
            answer, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await asyncio.shield(process.wait())
        answer = b""
    lines = answer.decode("ascii", "replace").splitlines()
    keys = tuple(dict.fromkeys(key for line in lines if not line.startswith("#") and (key := host_key(line))))
    if not keys:
        raise PlatformUnreachable(platform=host, why=f"nothing on port {port} shows a host key")
    return sorted(keys, key=lambda key: "ed25519" not in key)


async def find_confirmed(host: str, port: int, confirmed: Sequence[str]) -> Sequence[str]:
    """Return the host keys that a person confirmed, by key or by the fingerprint of a key that the host shows."""
    keys = [line for line in confirmed if host_key(line)]
    prints = set(confirmed) - set(keys)
    if prints:
        keys += [key for key in await scan(host, port) if fingerprint(key) in prints]
    return keys


async def describe_keys(host: str, port: int) -> str:
    """Return the fingerprints of a host's keys, for a person to compare."""
    return ", ".join(f"{fingerprint(key)} ({key.partition(' ')[0]})" for key in await scan(host, port))
