"""Community accounts as platforms: usable as soon as any process records them, with keys only in the ssh-agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sublet.access.model.account import Account
from sublet.kernel.errors import BadSettings
from sublet.kernel.settings import Settings
from sublet.kernel.vault import Vault
from sublet.platforms.port import Platform
from sublet.platforms.registry import load_platforms
from sublet.reach.agent import Agent
from sublet.reach.target import private
from sublet.reach.unattended import Holding
from sublet.store.store import Store

EVERY = timedelta(seconds=1)
DIRECTORY = "accounts"  # in SUBLET_HOME: the files that ssh reads for each account, none of them secret
PURPOSE = "account:{}"
NEVER = (-1, -1)  # a stamp that no accounts have


@dataclass
class AccountPlatforms:
    """Finds the recorded accounts, and how each is reached."""

    settings: Settings
    store: Store
    vault: Vault

    noun = "account"
    _accounts_seen: datetime | None = None
    _accounts_stamp: tuple[int, int] = NEVER
    _agent: Agent | None = None

    @property
    def agent(self) -> Agent:
        """The ssh-agent of this process."""
        if self._agent is None:
            self._agent = Agent(private(self.settings.home / "run"))
        return self._agent

    async def find(self, now: datetime) -> tuple[dict[str, dict[str, Any]], dict[str, str]] | None:
        """Return the settings of the accounts, and the errors of broken ones;

        None if they are unchanged or were just read.
        """
        if self._accounts_seen and abs(now - self._accounts_seen) < EVERY:
            return None
        self._accounts_seen = now
        stamp = await self.store.read(lambda tx: tx.accounts.stamp())
        if stamp == self._accounts_stamp:
            return None
        accounts = await self.store.read(lambda tx: tx.accounts.list())
        await asyncio.to_thread(self._write_accounts, accounts)
        self._accounts_stamp = stamp
        settings = {account.name: self.platform_settings(account) for account in accounts}
        wrong = {name: why for name, values in settings.items() if (why := _wrong(name, values))}
        return {name: values for name, values in settings.items() if name not in wrong}, wrong

    def platform_settings(self, account: Account) -> dict[str, Any]:
        """Return an account as the settings of its platform."""
        place = self._account_place(account.name)
        kept = ("host", "user", "port", "directory", "queue", "project", "qos", "options", "modules", "wckey")
        ssh = {
            "IdentityAgent": str(self.agent.socket),
            "UserKnownHostsFile": str(place / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": account.name,
        }
        values = {name: getattr(account, name) for name in kept}
        return {"kind": account.platform, "key": str(place / "key"), "ssh": ssh, **values}

    def holding(self, name: str) -> Holding:
        """Return a context manager that opens an account's key into the agent."""

        @contextlib.asynccontextmanager
        async def held() -> AsyncIterator[None]:
            sealed = await self.store.read(lambda tx: tx.accounts.key(name))
            key = await asyncio.to_thread(self.vault.open, PURPOSE.format(name), sealed)
            async with self.agent.holding(name, key, self._account_place(name) / "key.pub"):
                yield

        return held

    def look_again(self, *, changed: bool = False) -> None:
        """Read the accounts again next time; `changed`: even if their stamp is the same."""
        self._accounts_seen = None
        if changed:
            self._accounts_stamp = NEVER

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Give an account's platform the key that it signs in with."""
        platform.hold_key(self.holding(platform.name))

    async def end_agent(self) -> None:
        """Remove all keys from the agent."""
        if self._agent:
            await self._agent.close()

    def _account_place(self, name: str) -> Path:
        return self.settings.home / DIRECTORY / name

    def _write_accounts(self, accounts: list[Account]) -> None:
        """Write what ssh reads: the public key, the certificate, and the confirmed host keys."""
        for account in accounts:
            place = private(self._account_place(account.name))
            certificate = f"{account.certificate.strip()}\n" if account.certificate else ""
            known = "".join(f"{account.name} {line}\n" for line in account.host_keys)
            for name, text in (
                ("key.pub", f"{account.public}\n"),
                ("key-cert.pub", certificate),
                ("known_hosts", known),
            ):
                _write(place / name, text)


def _wrong(name: str, values: dict[str, Any]) -> str:
    """Return why an account can't be a platform, such as one added by another release; empty if it can."""
    try:
        load_platforms({name: values})
    except BadSettings as error:
        return error.message
    return ""


def _write(file: Path, text: str) -> None:
    """Write a file unless it has this text already, as a changed file makes ssh try anew."""
    if not text:
        file.unlink(missing_ok=True)
        return
    with contextlib.suppress(FileNotFoundError):
        if file.read_text() == text:
            return
    part = file.with_name(f"{file.name}.{os.getpid()}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(text)
    part.replace(file)
