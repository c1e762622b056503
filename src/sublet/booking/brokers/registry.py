"""The brokers that requests are forwarded to: added, listed, checked and removed by operators."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace

from sublet.booking.brokers.identity import PURPOSE, ServiceTokens
from sublet.booking.brokers.platforms import BrokerPlatforms, platform_settings
from sublet.booking.model.brokers import KnownBroker
from sublet.booking.model.phases import ACTIVE
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadBroker, NotFound, OperatorsOnly, SubletError
from sublet.kernel.vault import Vault
from sublet.people.model.person import Person
from sublet.platforms.registry import load_platforms
from sublet.store.store import Store
from sublet.store.tx import Tx

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")
HINT = "`sublet broker list` lists the brokers."


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker and its state."""

    broker: KnownBroker
    trouble: str = ""  # why it can't be asked now
    notes: tuple[str, ...] = ()  # what it says of itself


@dataclass
class Brokers:
    """Adds, checks and removes brokers, for operators only; a stored token is never shown again."""

    store: Store
    now: Clock
    vault: Vault
    platforms: KnownPlatforms
    source: BrokerPlatforms
    changes: PlatformChanges
    tokens: ServiceTokens

    async def list(self, person: Person) -> list[BrokerState]:
        """List all brokers, with their state as of the last survey."""
        _require_operator(person)
        known = await self.store.read(lambda tx: tx.brokers.list())
        return [self._as_seen(broker) for broker in known]

    async def add(
        self, person: Person, name: str, url: str, token: str = "", *, is_older: bool = False, host: str = ""
    ) -> BrokerState:
        """Add a broker and store its token sealed; requests are forwarded to it at once."""
        _require_operator(person)
        broker = KnownBroker(name, url.rstrip("/"), is_older=is_older, by=person.name)
        _check(broker)
        if name in self.platforms.by_name:
            raise BadBroker(name=name, why="another platform is called so")
        broker = replace(broker, token=await self._seal(name, token))
        now = self.now()
        detail = {"url": broker.url, "token": "given" if token else "none"}

        def add(tx: Tx) -> None:
            if tx.brokers.get(name):
                raise BadBroker(name=name, why="there is one of that name", hint=f"sublet broker remove {name}")
            tx.brokers.add(broker, now)
            tx.audit.add(AuditEntry(now, person.name, "broker.add", "broker", name, detail, host))

        await self.store.write(add)
        return await self._take_up(name)

    async def set_token(self, person: Person, name: str, token: str, *, host: str = "") -> BrokerState:
        """Replace the token for a broker."""
        _require_operator(person)
        if not token.strip():
            raise BadBroker(name=name, why="the token is empty", hint=f"sublet broker token {name} <token.txt")
        sealed, now = await self._seal(name, token), self.now()

        def change(tx: Tx) -> None:
            if not tx.brokers.set_token(name, sealed, now):
                raise NotFound(noun="broker", name=name, hint=HINT)
            tx.audit.add(AuditEntry(now, person.name, "broker.token", "broker", name, {}, host))

        await self.store.write(change)
        return await self._take_up(name)

    async def check(self, person: Person, name: str) -> BrokerState:
        """Ask a broker now whether it answers and accepts the token."""
        _require_operator(person)
        await self._get(name)
        return await self._look(name)

    async def remove(self, person: Person, name: str, *, host: str = "") -> None:
        """Stop forwarding to a broker and delete its token; refused while it runs sessions."""
        _require_operator(person)
        now = self.now()

        def remove(tx: Tx) -> None:
            going_on = tx.sessions.list(platform=name, phases=tuple(ACTIVE), limit=1).items
            if going_on:
                why = "sessions that it runs are not over"
                raise BadBroker(name=name, why=why, hint=f"Wait for them, or cancel them: sublet ps --platform {name}")
            if not tx.brokers.remove(name):
                raise NotFound(noun="broker", name=name, hint=HINT)
            tx.audit.add(AuditEntry(now, person.name, "broker.remove", "broker", name, {}, host))

        await self.store.write(remove)
        self.source.look_again()
        await self.changes.refresh()

    async def reseal(self) -> dict[str, int]:
        """Seal the brokers' tokens with the newest key, and count them."""
        old = {broker.name: broker.token for broker in await self.store.read(lambda tx: tx.brokers.list())}
        new = {
            name: await asyncio.to_thread(self.vault.reseal, PURPOSE.format(name), token)
            for name, token in old.items()
            if token
        }
        count = await self.store.write(lambda tx: sum(tx.brokers.seal(name, old[name], new[name]) for name in new))
        return {"broker": count}

    async def _seal(self, name: str, token: str) -> str:
        return await asyncio.to_thread(self.vault.seal, PURPOSE.format(name), token.strip()) if token.strip() else ""

    async def _get(self, name: str) -> KnownBroker:
        broker = await self.store.read(lambda tx: tx.brokers.get(name))
        if broker is None:
            raise NotFound(noun="broker", name=name, hint=HINT)
        return broker

    async def _take_up(self, name: str) -> BrokerState:
        self.tokens.forget()
        self.source.look_again(changed=True)
        await self.changes.refresh()
        return await self._look(name)

    async def _look(self, name: str) -> BrokerState:
        broker = await self._get(name)
        self.platforms.surveys.pop(name, None)
        try:
            survey = await self.platforms.survey_soon(name)
        except SubletError as error:
            return BrokerState(broker, f"{error.clause}. {error.advice}".strip())
        return BrokerState(broker, notes=survey.notes)

    def _as_seen(self, broker: KnownBroker) -> BrokerState:
        survey = self.platforms.surveys.get(broker.name)
        trouble = self.platforms.broken.get(f"broker {broker.name}", "")
        return BrokerState(broker, trouble, survey.notes if survey else ())


def _check(broker: KnownBroker) -> None:
    if not NAME.fullmatch(broker.name):
        raise BadBroker(name=broker.name[:60], why="a name has small letters, digits, `-`, `_` and `.`")
    load_platforms({broker.name: platform_settings(broker)}, lambda _, why: BadBroker(name=broker.name, why=why))


def _require_operator(person: Person) -> None:
    if not person.operator:
        raise OperatorsOnly
