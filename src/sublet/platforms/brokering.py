"""What the service asks of a platform that is another broker: to pass a request on, and to accept or decline offers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, runtime_checkable

from sublet.booking.model.offer import Answer, Quote, Remote
from sublet.people.model.assertion import Errand
from sublet.platforms.port import Platform


@dataclass(frozen=True, slots=True)
class PassedRequest:
    """A request on its way to another broker; this service doesn't need to understand it."""

    text: str  # the request as JSON: as received, or as changed by the operator's rules
    person: str
    key: str  # idempotency key: sending it again is the same request
    via: tuple[str, ...]  # the IDs of the brokers it has passed through, this one last
    within: timedelta  # how long the other broker has to answer
    duration: timedelta  # the least that was asked for, as far as this service understood it
    is_understood: bool  # whether this service understood the whole request
    request_id: str = ""  # the same by whichever route it reaches a broker

    @property
    def document(self) -> Mapping[str, Any]:
        """The request parsed from JSON, for a broker that needs another format; most are sent the text unchanged."""
        read: Mapping[str, Any] = json.loads(self.text)
        return read


@dataclass(frozen=True, slots=True)
class PassedAnswer:
    """Another broker's answer."""

    answer: Answer
    offerset: str = ""  # its URL at that broker
    dropped: int = 0  # offers that are held there but can't be passed on


class BrokerIdentity(Protocol):
    """Authenticates a person's calls to another broker."""

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """Return the headers that authenticate a person's call to this broker; None if this object has none for it.

        Credentials that are made for a single request need its `errand`; without one, none are made.
        """
        ...


def is_broker(platform: Platform) -> TypeGuard[PassesOn]:
    """Whether a platform's offers are another broker's; the test of its terms rules out most platforms quickly."""
    return platform.terms == "remote" and _passes_on(type(platform))


@lru_cache(maxsize=64)
def _passes_on(platform: type[Platform]) -> bool:
    """Whether a class has all members of `PassesOn`; cached, because isinstance on a protocol is slow."""
    return all(hasattr(platform, name) for name in vars(PassesOn) if not name.startswith("_"))


@runtime_checkable
class PassesOn(Protocol):
    """A platform whose offers are another broker's."""

    name: str

    def use_identity(self, identity: BrokerIdentity) -> None:
        """Set how to authenticate to the broker."""
        ...

    def has_address(self, location: str) -> bool:
        """Whether a URL is below the broker's own, which an operator of this service configured."""
        ...

    async def pass_on(self, request: PassedRequest, now: datetime) -> PassedAnswer:
        """Ask the other broker for offers; implausible parts of its answer are dropped and listed among the reasons."""
        ...

    async def take(self, terms: Remote, person: str, key: str) -> str:
        """Accept an offer at the broker and check that it is accepted; repeating the call gives the same session.

        Raise PlatformRefused if the offer can't be accepted any more.
        """
        ...

    async def lengthen(self, key: str, duration: timedelta) -> tuple[Quote, ...]:
        """Extend a session there to this total duration, and return its new price; repeating the call changes nothing.

        Raise PlatformRefused if it can't be extended.
        """
        ...

    async def give_up(self, url: str, person: str, by: str = "") -> None:
        """Release an offer or session at the broker: an offer is rejected, a running session is cancelled."""
        ...

    async def give_up_ask(self, offerset: str, person: str, again: PassedRequest | None, keep: frozenset[str]) -> None:
        """Reject all offers of a set except those in `keep`.

        Without the set's URL, the request is sent again first to find it.
        """
        ...
