"""A gateway to which people sign in by a code, as tests see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sublet.app import open_service
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import (
    SubletError,
)
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import StillClock
from tests.smtp import Mailbox


@dataclass
class Gateway:
    """A gateway, its clock, and its mail."""

    service: Service
    clock: StillClock
    mailbox: Mailbox

    async def asks(self, address: str, host: str = "192.0.2.1") -> str:
        """Ask for a code, and read the mail that brings it."""
        before = len(self.mailbox.to(address.lower()))
        await self.service.people.signing_in.ask_code(address, host)
        await asyncio.gather(*self.service.people.signing_in._mails)
        return self.mailbox.code(address.lower(), before + 1)

    async def audit(self, action: str = "", name: str = "") -> list[AuditEntry]:
        return await self.service.store.read(lambda tx: tx.audit.list(action=action, name=name))


def part(person: Person | None) -> Person | None:
    """Someone without what is said of their token."""
    return person and replace(person, until=None)


async def told(doing: Awaitable[object]) -> type[SubletError] | None:
    """The error that came of it."""
    try:
        await doing
    except SubletError as error:
        return type(error)
    return None


async def opened(home: Path, mailbox: Mailbox, **more: Any) -> AsyncIterator[Gateway]:
    clock = StillClock()
    settings = Settings.load(home, mode="gateway", mail=mailbox.settings, platforms={}, **more)
    async with open_service(settings, now=clock, loop=False) as service:
        yield Gateway(service, clock, mailbox)
