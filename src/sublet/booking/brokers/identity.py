"""How to authenticate to another broker: with a person's token or login, the service's token, or one signed here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sublet.booking.model.brokers import KnownBroker
from sublet.booking.ports import AssertionSource, CredentialSource
from sublet.data.model.credentials import Credential, CredentialKind, credential_for
from sublet.kernel.brief_memory import BriefMemory
from sublet.kernel.errors import SubletError
from sublet.kernel.home import Home
from sublet.kernel.kept_logins import find_token
from sublet.kernel.log import log
from sublet.kernel.vault import Vault
from sublet.people.model.assertion import Errand
from sublet.platforms.brokering import BrokerIdentity
from sublet.store.store import Store

PURPOSE = "broker:{}"
MOMENT = 1.0  # seconds for which a token is cached: a request is forwarded to many brokers at once


@dataclass
class BrokerIdentities:
    """Several ways to authenticate to a broker; the first that has headers counts."""

    ways: Sequence[BrokerIdentity]

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """Return the headers of the first way that has any, or None."""
        for way in self.ways:
            if (headers := await way.authorize(broker, url, person, errand)) is not None:
                return headers
        return None


@dataclass
class OwnTokens:
    """A person's own token, stored by `sublet credential add https://broker… --token`."""

    credentials: CredentialSource
    _known: BriefMemory[Sequence[Credential]] = field(default_factory=lambda: BriefMemory(MOMENT))

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """Return headers with the person's token for this address, or None."""
        if not person:
            return None
        known = await self._known.recall(person, partial(self._open, person))
        tokens = [kept for kept in known if kept.kind is CredentialKind.TOKEN]
        own = credential_for(tokens, url)
        return {"authorization": f"Bearer {own.secret}"} if own else None

    async def _open(self, person: str) -> Sequence[Credential]:
        return await self.credentials.open(person)


@dataclass
class ServiceTokens:
    """The token that a broker was added with; everyone who uses the broker here shares one identity there."""

    store: Store
    vault: Vault
    _known: BriefMemory[Mapping[str, KnownBroker]] = field(default_factory=lambda: BriefMemory(MOMENT))

    def forget(self) -> None:
        """Clear the cache, because a broker was added or has another token."""
        self._known.forget()

    async def _list(self) -> Mapping[str, KnownBroker]:
        return {broker.name: broker for broker in await self.store.read(lambda tx: tx.brokers.list())}

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """Return headers with the broker's token; None if it has none, or is at another address now."""
        known = (await self._known.recall("", self._list)).get(broker)
        if known is None or not known.token or known.url != url:
            return None
        token = await asyncio.to_thread(self.vault.open, PURPOSE.format(broker), known.token)
        return {"authorization": f"Bearer {token}"}


@dataclass
class OwnerLogins:
    """The login of the owner of a personal service, stored by `sublet broker login` or `sublet login`, and renewed."""

    home: Home
    owner: str
    _known: BriefMemory[str] = field(default_factory=lambda: BriefMemory(MOMENT))

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """Return headers with the token of the owner's login to this address; None if there is none."""
        if person not in ("", self.owner):
            return None
        try:
            token = await self._known.recall(url, lambda: asyncio.to_thread(find_token, self.home, url))
        except SubletError as error:
            log.warning("broker.login-not-renewed", broker=broker, why=error.message)
            return None
        if not token:
            self._known.forget()  # so that a new login counts at once
            return None
        return {"authorization": f"Bearer {token}"}


@dataclass
class SignedErrands:
    """A token for each request, signed here; the other broker trusts this service to say who the person is."""

    assertions: AssertionSource

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """Return headers with a token for this errand only; None if this service doesn't sign for people."""
        if not person or errand is None or not self.assertions.can_sign:
            return None
        return {"authorization": f"Bearer {await self.assertions.make(person, url, errand)}"}
