"""Removes sessions' directories from a server.

The server's own way is to put them into a trash, where they would stay.
"""

from __future__ import annotations

import asyncio

from sublet.platforms.jupyter.channel import Disconnected, KernelDied, open_channel
from sublet.platforms.jupyter.notebooks import PYTHON, write_removal
from sublet.platforms.jupyter.server import ServerApi

SLOWEST = 60.0  # seconds


async def remove_directory(api: ServerApi, key: str) -> None:
    """Remove a session's directory: by a Python kernel if possible, else through the server."""
    directory = api.directory(key)
    if not await api.has_folder(directory):
        return
    specs = await api.list_kernelspecs()
    if kernel := specs.find(specs.default, PYTHON):
        id = await api.have_kernel(f"{directory}/remove", kernel)
        try:
            async with asyncio.timeout(SLOWEST), open_channel(api, id, "remove") as channel:
                request = await channel.execute(write_removal(directory), silent=True)
                message = await channel.receive()
                while (message.kind, message.parent) != ("execute_reply", request):
                    message = await channel.receive()
        except (Disconnected, KernelDied, TimeoutError):
            pass  # then the server removes it
        finally:
            await api.end_kernels(key)
    if await api.has_folder(directory):
        await api.remove(directory)
