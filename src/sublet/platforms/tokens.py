"""The token for a platform with an API: kept in the vault, or in a file that nobody else can read."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from sublet.kernel.errors import TokenNeeded
from sublet.kernel.secret_file import find_token_fault

ALONE = "Get one there, and put it into that file, alone and on one line."
FindToken = Callable[[str, str], Awaitable[str]]  # (address, whose credential) → the token, or empty


@runtime_checkable
class OpensWithToken(Protocol):
    """A platform that authenticates to its API with a token."""

    def hold_tokens(self, find: FindToken) -> None:
        """Set the function to call each time the token is needed."""
        ...


async def find_none(address: str, person: str) -> str:
    """Return no token: the default of a platform for which none is stored."""
    return ""


class TokenSource:
    """Where a platform's token comes from: its file, or else the credential stored for its address."""

    def __init__(self, platform: str, address: str, file: str, person: str) -> None:
        """Set whose credential is used: `person`, or the service's owner if empty."""
        self.platform, self.address, self.file, self.person = platform, address, file, person
        self.find: FindToken = find_none

    async def read(self) -> str:
        """Return the token; it is read each time, so that a replaced token takes effect at once."""
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
            raise TokenNeeded(f"The token of {self.platform} can't be read from {path}: {why}.", hint=ALONE) from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO) and os.name == "posix":
            raise TokenNeeded(f"Others can read the token of {self.platform} in {path}.", hint=f"Run: chmod 600 {path}")
        if not text:
            raise TokenNeeded(f"There is no token of {self.platform} in {path}: the file is empty.", hint=ALONE)
        if fault := find_token_fault(text):
            raise TokenNeeded(f"The token of {self.platform} in {path} can't be sent: {fault}.", hint=ALONE)
        return text
