"""The login of a service account: a key or a certificate opens it, and no person is ever asked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from sublet.kernel.errors import AccountRefused, LoginNeeded, PlatformRefused
from sublet.reach.batch import Batch
from sublet.reach.certificates import find_expired
from sublet.reach.login import Login
from sublet.reach.port import Outcome
from sublet.reach.prompts import nobody
from sublet.reach.refusals import HostKey
from sublet.reach.shell import ShellReach

Holding = Callable[[], AbstractAsyncContextManager[None]]  # makes a key usable while the block runs
_AGAIN = 60.0  # seconds until a host that refused the account is tried again, unless the key has changed
_SECONDS = 60.0


def by_key(key: str) -> dict[str, str]:
    """Return ssh options that use this key with its certificate, and nothing that a person would have to type."""
    return {
        "IdentityFile": key,
        "IdentitiesOnly": "yes",
        "PreferredAuthentications": "publickey",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "BatchMode": "yes",
    }


class UnattendedReach(ShellReach):
    """Commands over a login that is opened when needed, and again after it has lapsed."""

    def __init__(self, login: Login, key: str, holding: Holding | None = None) -> None:
        """Use a login that this key opens, with the certificate beside it or in the login's options.

        `holding` makes a key that isn't in a file available to ssh while the login is being opened.
        """
        super().__init__(login.reach.name)
        self._login = login
        self._holding: Holding = holding or contextlib.nullcontext
        certificate = login.target.options.get("CertificateFile", f"{key}-cert.pub")
        self._files = (f"{key}.pub" if holding else key, certificate)
        self._opening = asyncio.Lock()
        self._refused: tuple[float, object, AccountRefused] | None = None

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Run a batch on the machine, opening the login first if needed."""
        try:
            return await self._login.reach.exchange(batch, seconds)
        except LoginNeeded:  # nothing was sent
            await self._open()
        return await self._login.reach.exchange(batch, seconds)

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads a stream; return None if no login is open, since only commands open one."""
        return await self._login.reach.pour(argv, pieces)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Return the address of a tunnel through the login, opening the login first if needed."""
        try:
            return await self._login.reach.tunnel(name, host, port)
        except LoginNeeded:
            await self._open()
        return await self._login.reach.tunnel(name, host, port)

    async def untunnel(self, name: str) -> None:
        """Close a tunnel."""
        await self._login.reach.untunnel(name)

    async def close(self) -> None:
        """Close the login, which can be opened again without a person."""
        await self._login.close()

    async def _open(self) -> None:
        async with self._opening:
            stamp = [_read_stamp(file) for file in self._files]
            if self._refused and self._refused[1] == stamp and time.monotonic() - self._refused[0] < _AGAIN:
                raise self._refused[2]
            try:
                if end := await find_expired(self._login.target):
                    raise self._too_old(f"{end:%Y-%m-%d %H:%M}")
                async with self._holding():
                    await self._login.open(nobody, _SECONDS)
            except PlatformRefused as error:
                refused = AccountRefused(platform=self.name, why=error.message, hint=self._advice(error))
                self._refused = (time.monotonic(), stamp, refused)
                raise refused from error
            self._refused = None

    def _too_old(self, end: str) -> AccountRefused:
        return AccountRefused(
            f"The certificate of the service account at {self.name} expired on {end} UTC.",
            hint=f"Its operator puts a new one into {self._files[1]}; nothing else is needed.",
        )

    def _advice(self, error: PlatformRefused) -> str:
        host_key = error.values.get("host_key")
        if host_key is HostKey.UNCONFIRMED:
            return f"Put the host key that the centre publishes for {self._login.target.host} into known_hosts."
        if host_key is HostKey.CHANGED:
            return error.advice
        return f"Its operator checks the user name, and whether the centre knows {self._files[0]}."


def _read_stamp(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(os.path.expanduser(file))
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino
