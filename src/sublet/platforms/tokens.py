"""What opens a platform with an API: a token, which is sealed, or in a file that nobody else can read."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from sublet.kernel.errors import TokenNeeded

FindToken = Callable[[str, str], Awaitable[str]]  # an address, and whose credential for it → the token; empty: none


@runtime_checkable
class OpensWithToken(Protocol):
    """A platform that shows a token to its API."""

    def hold_tokens(self, find: FindToken) -> None:
        """Ask this for the token, each time that it is needed."""
        ...


async def find_none(address: str, person: str) -> str:
    """The token where nothing is sealed."""
    return ""


class TokenSource:
    """Where a platform's token comes from: its file, else what is sealed for its address."""

    def __init__(self, platform: str, address: str, file: str, person: str) -> None:
        """`person` is whose credential it is; empty: that of whoever the service belongs to."""
        self.platform, self.address, self.file, self.person = platform, address, file, person
        self.find: FindToken = find_none

    async def read(self) -> str:
        """The token; it is read anew each time, so that another one counts at once."""
        if self.file:
            return await asyncio.to_thread(self._read_file)
        token = await self.find(self.address, self.person)
        if not token:
            raise TokenNeeded(platform=self.platform, address=self.address)
        return token

    def _read_file(self) -> str:
        path = Path(self.file).expanduser()
        try:
            mode = path.stat().st_mode
            text = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise TokenNeeded(f"The token of {self.platform} can't be read from {path}: {why}.") from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO) and os.name == "posix":
            raise TokenNeeded(f"Others can read the token of {self.platform} in {path}.", hint=f"Run: chmod 600 {path}")
        if not text:
            raise TokenNeeded(f"There is no token of {self.platform} in {path}: the file is empty.")
        return text
